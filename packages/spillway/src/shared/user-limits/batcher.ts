/**
 * Group commit: one round trip at a time carries all requests made in one turn, or while the last
 * one was in flight, in order. A single request does not wait. Requesters are called back by a
 * method, because a promise for each would be most of the cost.
 */

import { isThenable } from '../../core/thenable.js'
import { nextTickBatch } from '../../core/time/next-tick-batch.js'
import type { MaybePromise } from '../../store/port.js'

const MOST_PER_ROUND_TRIP = 256

/** A requester. One of the two methods is called, once, in any async context. */
export interface ReplyListener<A> {
  onReply(reply: A): void
  onFailure(error: unknown): void
}

export interface BatcherOptions<Q, A> {
  send(requests: Q[]): MaybePromise<A[]>
  /** The reply if the round trip failed, or throws the error for the requester. */
  instead(request: Q, error: unknown): A
}

export class Batcher<Q, A> {
  readonly #options: BatcherOptions<Q, A>
  /** Each with its requester at the same index. */
  #requests: Q[] = []
  #listeners: ReplyListener<A>[] = []
  #underWay = false
  readonly #sendBatchSoon = nextTickBatch(() => this.#sendBatch())

  constructor(options: BatcherOptions<Q, A>) {
    this.#options = options
  }

  add(request: Q, listener: ReplyListener<A>): void {
    this.#requests.push(request)
    this.#listeners.push(listener)
    if (!this.#underWay) this.#sendBatchSoon()
  }

  #sendBatch(): void {
    while (this.#requests.length > 0 && !this.#underWay) {
      const requests = this.#requests.splice(0, MOST_PER_ROUND_TRIP)
      const listeners = this.#listeners.splice(0, MOST_PER_ROUND_TRIP)
      let replies: MaybePromise<A[]>
      try {
        replies = this.#options.send(requests)
      } catch (error) {
        this.#fail(requests, listeners, error)
        continue
      }
      if (!isThenable(replies)) {
        deliver(listeners, replies)
        continue
      }
      this.#underWay = true
      replies.then(
        (each) => {
          this.#batchEnded()
          deliver(listeners, each)
        },
        (error) => {
          this.#batchEnded()
          this.#fail(requests, listeners, error)
        },
      )
    }
  }

  /** The next round trip starts before requesters handle the replies of this one. */
  #batchEnded(): void {
    this.#underWay = false
    this.#sendBatch()
  }

  #fail(requests: readonly Q[], listeners: readonly ReplyListener<A>[], cause: unknown): void {
    for (const [index, listener] of listeners.entries()) {
      let reply: A
      try {
        reply = this.#options.instead(requests[index] as Q, cause)
      } catch (error) {
        notify(() => listener.onFailure(error))
        continue
      }
      notify(() => listener.onReply(reply))
    }
  }
}

function deliver<A>(listeners: readonly ReplyListener<A>[], replies: readonly A[]): void {
  for (let index = 0; index < listeners.length; index++) {
    notify(() => listeners[index]?.onReply(replies[index] as A))
  }
}

/** An exception in one requester must not affect the others. It is reported as uncaught. */
function notify(one: () => void): void {
  try {
    one()
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
  }
}
