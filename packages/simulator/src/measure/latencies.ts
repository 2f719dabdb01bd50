/** Times, to two per cent, however many there are. */
const GROWTH = Math.log(1.02)
/** Up to some twenty minutes; what takes longer counts as that. */
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

  /** Nothing, where there is none. */
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
