/** Histogram of durations with a precision of 2 %, in constant memory. */
const GROWTH = Math.log(1.02)
/** Up to about twenty minutes; longer durations count in the last bucket. */
const BINS = 720

export class Latencies {
  readonly #bins = new Uint32Array(BINS)
  count = 0

  add(ms: number): void {
    this.count++
    this.#bins[Math.min(BINS - 1, Math.floor(Math.log(ms + 1) / GROWTH))]!++
  }

  addAll(other: Latencies): void {
    this.count += other.count
    for (let bin = 0; bin < BINS; bin++) this.#bins[bin]! += other.#bins[bin]!
  }

  /** Undefined without a sample. */
  percentile(part: number): number | undefined {
    let left = Math.ceil(this.count * part)
    if (left === 0) return undefined
    for (let bin = 0; bin < BINS; bin++) {
      left -= this.#bins[bin]!
      if (left <= 0) return Math.exp((bin + 0.5) * GROWTH) - 1
    }
    return undefined
  }
}
