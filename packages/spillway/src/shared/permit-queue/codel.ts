/**
 * Controlled delay (CoDel): distinguishes a burst, which a queue is for, from a standing queue. The queue is
 * standing when even the oldest call's wait stays above the target for a whole interval. Then the newest calls
 * are served first, because they can still be answered in time, and the oldest are dropped, faster and faster,
 * until the wait is below the target again.
 */
export class CoDel {
  readonly #targetMs: number
  readonly #intervalMs: number
  /** When the wait will have been above the target for an interval. */
  #standingAtMs: number | undefined
  #nextDropMs: number | undefined
  #drops = 0

  constructor(targetMs: number, intervalMs: number = targetMs) {
    this.#targetMs = targetMs
    this.#intervalMs = intervalMs
  }

  /** Whether the queue was standing at the last `observe`. */
  get standing(): boolean {
    return this.#nextDropMs !== undefined
  }

  /** `delayMs`: the oldest call's wait; negative if the queue is empty. */
  observe(nowMs: number, delayMs: number): void {
    if (delayMs < this.#targetMs) {
      this.#standingAtMs = undefined
      this.#nextDropMs = undefined
      return
    }
    this.#standingAtMs ??= nowMs + this.#intervalMs
    if (this.#nextDropMs !== undefined || nowMs < this.#standingAtMs) return
    this.#nextDropMs = nowMs
    this.#drops = 0
  }

  /** Whether one more call has to be dropped now. */
  drop(nowMs: number): boolean {
    if (this.#nextDropMs === undefined || nowMs < this.#nextDropMs) return false
    this.#drops++
    this.#nextDropMs += this.#intervalMs / Math.sqrt(this.#drops)
    return true
  }
}
