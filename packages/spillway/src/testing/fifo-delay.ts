/**
 * A way that takes time and on which nothing overtakes: what is sent later arrives later, or in the
 * same moment. One timer, for what arrives next.
 */

import { type Linked, LinkedList } from '../core/collections/linked-list.js'
import type { Clock, Timer } from '../core/time/clock.js'

interface Parcel<T> extends Linked<Parcel<T>> {
  readonly item: T
  /** When it would arrive if nothing were in front of it. */
  readonly atMs: number
}

export class DelayLine<T> {
  readonly #clock: Clock
  readonly #arrive: (item: T) => void
  #parcels = new LinkedList<Parcel<T>>()
  #timer: Timer | undefined
  #firing = false

  constructor(clock: Clock, arrive: (item: T) => void) {
    this.#clock = clock
    this.#arrive = arrive
  }

  send(item: T, delayMs: number): void {
    const atMs = this.#clock.now() + delayMs
    this.#parcels.push({ item, atMs, before: undefined, after: undefined })
    this.#ensureTimer()
  }

  /** Forgets what is on its way, and answers with how much that was. */
  clear(): number {
    const { length } = this.#parcels
    this.#parcels = new LinkedList()
    this.#timer?.cancel()
    this.#timer = undefined
    return length
  }

  #ensureTimer(): void {
    const { first } = this.#parcels
    if (first === undefined || this.#timer !== undefined || this.#firing) return
    this.#timer = this.#clock.schedule(first.atMs - this.#clock.now(), () => this.#fire())
  }

  /** What arrives in one moment arrives together, as in one packet. */
  #fire(): void {
    this.#timer = undefined
    this.#firing = true
    // A time plus what is left until another can be a hair less than that other.
    const nowMs = Math.max(this.#clock.now(), this.#parcels.first?.atMs ?? 0)
    for (;;) {
      const { first } = this.#parcels
      if (first === undefined || first.atMs > nowMs) break
      this.#parcels.remove(first)
      this.#arrive(first.item)
    }
    this.#firing = false
    this.#ensureTimer()
  }
}
