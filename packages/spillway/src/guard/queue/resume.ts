/**
 * Starts calls that have waited, together in a microtask, each in its caller's async context. Started synchronously,
 * a call would inherit the deadline of the call that freed its slot.
 */
import type { QueuedCall } from '../../shared/permit-queue/queued-call.js'

/** `A`: the permits it needs to begin. */
export interface ResumableCall<A> extends QueuedCall<A> {
  /** Does not throw. */
  begin(permits: A): void
}

const NOW = Promise.resolve()

export class CallResumer<A> {
  #calls: ResumableCall<A>[] = []
  #permits: A[] = []
  readonly #resumeAll = () => {
    const [calls, permits] = [this.#calls, this.#permits]
    this.#calls = []
    this.#permits = []
    for (let index = 0; index < calls.length; index++) {
      const call = calls[index] as ResumableCall<A>
      call.runInAsyncScope(call.begin, call, permits[index])
    }
  }

  resumeSoon(call: ResumableCall<A>, permits: A): void {
    this.#permits.push(permits)
    if (this.#calls.push(call) === 1) NOW.then(this.#resumeAll)
  }
}
