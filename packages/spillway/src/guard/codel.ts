/**
 * Controlled delay: tells a burst, which a queue is there for, from a queue that never gets shorter.
 * If even the oldest entry's wait stays over the target for a whole interval, the queue is standing:
 * then the newest are served first, because they still have a chance, and the oldest are let go,
 * faster and faster until the wait is back under the target.
 */
export class CoDel {
  readonly #targetMs: number
  readonly #intervalMs: number
  /** When the wait will have been over the target for an interval. */
  #standingAtMs: number | undefined
  #nextDropMs: number | undefined
  #drops = 0

  constructor(targetMs: number, intervalMs: number = targetMs) {
    this.#targetMs = targetMs
    this.#intervalMs = intervalMs
  }

  /** Whether the queue stands, as of the last look. */
  get standing(): boolean {
    return this.#nextDropMs !== undefined
  }

  /** Looks at how long the oldest entry has waited; below zero, if there is none. */
  look(nowMs: number, oldestWaitMs: number): void {
    if (oldestWaitMs < this.#targetMs) {
      this.#standingAtMs = undefined
      this.#nextDropMs = undefined
      return
    }
    this.#standingAtMs ??= nowMs + this.#intervalMs
    if (this.#nextDropMs !== undefined || nowMs < this.#standingAtMs) return
    this.#nextDropMs = nowMs
    this.#drops = 0
  }

  /** Whether one more has to go now. */
  drop(nowMs: number): boolean {
    if (this.#nextDropMs === undefined || nowMs < this.#nextDropMs) return false
    this.#drops++
    this.#nextDropMs += this.#intervalMs / Math.sqrt(this.#drops)
    return true
  }
}
