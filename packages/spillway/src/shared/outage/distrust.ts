/**
 * Decides when failures of single commands count as an outage of the store. Pure counting; callers
 * pass the time.
 */
import { StoreFailure } from '../../store/store-failure.js'

/** This number of failures is an outage although other replies arrived meanwhile. */
const MOST_FAILURES = 3
/** A failure after this long without any reply is an outage. */
const SILENCE_MS = 90
/**
 * Permits that arrive too late to be used are an outage as well, if there are this many in a row
 * over this time.
 */
const MOST_LATE = 10
const LATE_MS = 500

export class Distrust {
  #repliedMs = Number.NEGATIVE_INFINITY
  #failures = 0
  /** Late replies in a row. */
  #late = 0
  #lateSinceMs = 0

  replied(nowMs: number): void {
    this.#repliedMs = nowMs
    this.#failures = 0
  }

  silentMs(nowMs: number): number {
    return nowMs - this.#repliedMs
  }

  /** Whether a failed command means an outage. A single missing reply among others does not. */
  failed(error: unknown, nowMs: number): boolean {
    const unsure = error instanceof StoreFailure ? error.kind === 'ambiguous' : true
    return !unsure || this.silentMs(nowMs) >= SILENCE_MS || ++this.#failures >= MOST_FAILURES
  }

  /** Whether permits have been late for too long. Called for each reply with permits. */
  permitted(late: boolean, nowMs: number): boolean {
    if (this.#late === 0) this.#lateSinceMs = nowMs
    this.#late = late ? this.#late + 1 : 0
    return this.#late >= MOST_LATE && nowMs - this.#lateSinceMs >= LATE_MS
  }

  /** The late replies led to an outage, so counting starts again. */
  forgetLate(): void {
    this.#late = 0
  }
}
