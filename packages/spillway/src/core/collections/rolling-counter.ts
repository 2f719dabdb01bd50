/**
 * Counts what happened in the last `windowMs`, in constant memory. Time is cut into slices, each
 * with a total. The oldest slice counts entirely until it has left the window. So the result is
 * never too small, and too large by at most one slice.
 */
export class RollingCounter {
  /** The real length of the window: `windowMs` rounded up to whole slices. */
  readonly windowMs: number
  readonly #sliceMs: number
  /** A ring of the window's slices and the one being filled. */
  readonly #slices: Float64Array
  /** Number of the newest slice, counted from time zero. */
  #newest = Number.NEGATIVE_INFINITY
  #total = 0

  constructor(windowMs: number, slices: number) {
    // Whole milliseconds, so that waiting until the end of a slice really frees it.
    this.#sliceMs = Math.ceil(windowMs / slices)
    const count = Math.ceil(windowMs / this.#sliceMs)
    this.windowMs = count * this.#sliceMs
    this.#slices = new Float64Array(count + 1)
  }

  add(nowMs: number, amount: number): void {
    this.#advance(nowMs)
    const index = this.#newest % this.#slices.length
    ;(this.#slices[index] as number) += amount
    this.#total += amount
  }

  total(nowMs: number): number {
    this.#advance(nowMs)
    return this.#total
  }

  /** How far back the total reaches now: the window and the elapsed part of the newest slice. */
  coveredMs(nowMs: number): number {
    return this.windowMs + (nowMs % this.#sliceMs)
  }

  /** Milliseconds until at least `amount` of the current total has left the window. */
  msUntilLeft(nowMs: number, amount: number): number {
    this.#advance(nowMs)
    if (amount <= 0) return 0
    const length = this.#slices.length
    let left = 0
    for (let slice = this.#newest - length + 1; slice <= this.#newest; slice++) {
      left += slice < 0 ? 0 : this.#at(slice % length)
      if (left >= amount) return (slice + length) * this.#sliceMs - nowMs
    }
    return Number.POSITIVE_INFINITY
  }

  #advance(nowMs: number): void {
    const slice = Math.floor(nowMs / this.#sliceMs)
    if (slice <= this.#newest) return
    const length = this.#slices.length
    if (slice - this.#newest >= length) {
      this.#slices.fill(0)
      this.#total = 0
    } else {
      for (let passed = this.#newest + 1; passed <= slice; passed++) {
        this.#total -= this.#at(passed % length)
        this.#slices[passed % length] = 0
      }
    }
    this.#newest = slice
  }

  #at(index: number): number {
    return this.#slices[index] as number
  }
}
