/** Whether a store that fails now and then is as good as none. Counts only; who asks says what time it is. */
import { StoreFailure } from '../../store/store-failure.js'

/** So many failures are an outage although other answers came meanwhile. */
const MOST_FAILURES = 3
/** Nothing at all for so long is no bad luck. */
const SILENCE_MS = 90
/** Permits that came too late to be used, so many in a row and for so long, are an outage as well. */
const MOST_LATE = 10
const LATE_MS = 500

export class Doubts {
  #heardMs = Number.NEGATIVE_INFINITY
  #failures = 0
  /** Answers in a row that came too late to be of use. */
  #late = 0
  #lateSinceMs = 0

  heard(nowMs: number): void {
    this.#heardMs = nowMs
    this.#failures = 0
  }

  silentMs(nowMs: number): number {
    return nowMs - this.#heardMs
  }

  /** A command has failed: is that an outage? One answer that did not come may be bad luck, if others did. */
  failed(error: unknown, nowMs: number): boolean {
    const unsure = error instanceof StoreFailure ? error.kind === 'ambiguous' : true
    return !unsure || this.silentMs(nowMs) >= SILENCE_MS || ++this.#failures >= MOST_FAILURES
  }

  /** Permits have come, in time to be used or not: has it been too late for too long? */
  permitted(late: boolean, nowMs: number): boolean {
    if (this.#late === 0) this.#lateSinceMs = nowMs
    this.#late = late ? this.#late + 1 : 0
    return this.#late >= MOST_LATE && nowMs - this.#lateSinceMs >= LATE_MS
  }

  /** It was taken for an outage: what comes late after that is counted anew. */
  forgetLate(): void {
    this.#late = 0
  }
}
