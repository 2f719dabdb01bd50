/**
 * Group commit: one trip at a time carries everybody who asked in one go, or while the last one was
 * under way, in order. Alone, a request waits for nobody. Whoever asks is told by a method of its own:
 * a promise for each would be most of what a request costs here.
 */
import { gathering } from '../../core/next-tick-batch.js'
import { isThenable } from '../../core/thenable.js'
import type { MaybePromise } from '../../store/port.js'

const MOST_IN_A_TRIP = 256

/** Who has asked. Hears one or the other, once, in whatever async context the answer came. */
export interface Asker<A> {
  onReply(reply: A): void
  onFailure(error: unknown): void
}

export interface BatcherOptions<Q, A> {
  send(requests: Q[]): MaybePromise<A[]>
  /** What to reply when the trip came to nothing; throws what the asker is to hear of it. */
  instead(request: Q, error: unknown): A
}

export class Batcher<Q, A> {
  readonly #options: BatcherOptions<Q, A>
  /** Each with its asker. */
  #requests: Q[] = []
  #askers: Asker<A>[] = []
  #underWay = false
  readonly #goSoon = gathering(() => this.#go())

  constructor(options: BatcherOptions<Q, A>) {
    this.#options = options
  }

  ask(request: Q, asker: Asker<A>): void {
    this.#requests.push(request)
    this.#askers.push(asker)
    if (!this.#underWay) this.#goSoon()
  }

  #go(): void {
    while (this.#requests.length > 0 && !this.#underWay) {
      const requests = this.#requests.splice(0, MOST_IN_A_TRIP)
      const askers = this.#askers.splice(0, MOST_IN_A_TRIP)
      let replies: MaybePromise<A[]>
      try {
        replies = this.#options.send(requests)
      } catch (error) {
        this.#fail(requests, askers, error)
        continue
      }
      if (!isThenable(replies)) {
        deliver(askers, replies)
        continue
      }
      this.#underWay = true
      replies.then(
        (each) => {
          this.#back()
          deliver(askers, each)
        },
        (error) => {
          this.#back()
          this.#fail(requests, askers, error)
        },
      )
    }
  }

  /** The next trip leaves before anybody does anything with what this one has brought. */
  #back(): void {
    this.#underWay = false
    this.#go()
  }

  #fail(requests: readonly Q[], askers: readonly Asker<A>[], cause: unknown): void {
    for (const [index, asker] of askers.entries()) {
      let reply: A
      try {
        reply = this.#options.instead(requests[index] as Q, cause)
      } catch (error) {
        tell(() => asker.onFailure(error))
        continue
      }
      tell(() => asker.onReply(reply))
    }
  }
}

function deliver<A>(askers: readonly Asker<A>[], replies: readonly A[]): void {
  for (let index = 0; index < askers.length; index++) {
    tell(() => askers[index]?.onReply(replies[index] as A))
  }
}

/** A mistake in one of them is not the others' fault: they hear, and whoever watches the process hears of it. */
function tell(one: () => void): void {
  try {
    one()
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
  }
}
