/**
 * Starts calls that have waited: not inside of whoever made way for them, but a moment later, all
 * together, and each in its own caller's async context. Otherwise a call would run under the deadline
 * of the one that freed the slot.
 */
import { AsyncResource } from 'node:async_hooks'

export interface Startable {
  /** Where it was when it began to wait. */
  readonly origin: AsyncResource | undefined
  /** Does not throw. */
  begin(): void
}

const NOW = Promise.resolve()
/** Nothing to clean up: there is nobody to tell. */
const ORIGIN_OPTIONS = { requireManualDestroy: true }

/** Here: a fraction of what a promise would cost that keeps the same in mind. */
export function currentOrigin(): AsyncResource {
  return new AsyncResource('SpillwayWaiting', ORIGIN_OPTIONS)
}

export class Starter {
  #ready: Startable[] = []
  readonly #startAll = () => {
    const ready = this.#ready
    this.#ready = []
    for (const each of ready) each.origin?.runInAsyncScope(each.begin, each)
  }

  startSoon(call: Startable): void {
    if (this.#ready.push(call) === 1) NOW.then(this.#startAll)
  }
}
