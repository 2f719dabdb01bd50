/**
 * Delays messages without reordering: a later message arrives later, or at the same moment. Needs
 * one timer.
 */

import { type Linked, LinkedList } from '../core/collections/linked-list.js'
import type { Clock, Timer } from '../core/time/clock.js'

interface Parcel<T> extends Linked<Parcel<T>> {
  readonly item: T
  /** When it would arrive if no other message were ahead of it. */
  readonly atMs: number
}

export class FifoDelay<T> {
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

  /** Drops all messages in flight and returns how many there were. */
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

  /** Messages that arrive at the same moment are delivered together, as in one packet. */
  #fire(): void {
    this.#timer = undefined
    this.#firing = true
    // Because of rounding, now plus the rest until a time can be slightly less than that time.
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
