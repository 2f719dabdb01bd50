/**
 * Percentiles over the last `windowMs`, based on Node's histograms. Recording is one native call. A
 * percentile is read by merging a few histograms, without sorting samples.
 */
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'

const SLICES = 6
/** One hour in microseconds; longer values are recorded as this. */
const HIGHEST = 3_600_000_000

/** Node's histograms have no zeroth percentile. */
const LOWEST_PERCENTILE = 1e-6

function emptyHistogram(): RecordableHistogram {
  return createHistogram({ lowest: 1, highest: HIGHEST, figures: 2 })
}

export class RollingHistogram {
  readonly #sliceMs: number
  readonly #slices: RecordableHistogram[]
  readonly #merged = emptyHistogram()
  #newest = Number.NEGATIVE_INFINITY
  /** Nothing was recorded and no slice was dropped since the last merge. */
  #fresh = true

  constructor(windowMs: number) {
    this.#sliceMs = Math.max(1, Math.ceil(windowMs / SLICES))
    this.#slices = Array.from({ length: SLICES }, emptyHistogram)
  }

  record(nowMs: number, valueMs: number): void {
    this.#advance(nowMs)
    const us = Math.round(valueMs * 1_000)
    this.#slice(this.#newest).record(us < 1 ? 1 : us > HIGHEST ? HIGHEST : us)
    this.#fresh = false
  }

  /** Milliseconds that this fraction (0 to 1) of the values do not exceed; 0 without values. */
  percentile(nowMs: number, fraction: number): number {
    const merged = this.#merge(nowMs)
    return merged.count === 0
      ? 0
      : merged.percentile(Math.max(fraction * 100, LOWEST_PERCENTILE)) / 1_000
  }

  count(nowMs: number): number {
    return this.#merge(nowMs).count
  }

  #merge(nowMs: number): RecordableHistogram {
    this.#advance(nowMs)
    if (this.#fresh) return this.#merged
    this.#merged.reset()
    for (const slice of this.#slices) if (slice.count > 0) this.#merged.add(slice)
    this.#fresh = true
    return this.#merged
  }

  #advance(nowMs: number): void {
    const slice = Math.floor(nowMs / this.#sliceMs)
    if (slice <= this.#newest) return
    const from = Math.max(0, this.#newest + 1, slice - SLICES + 1)
    for (let passed = from; passed <= slice; passed++) this.#slice(passed).reset()
    this.#newest = slice
    this.#fresh = false
  }

  #slice(number: number): RecordableHistogram {
    return this.#slices[number % SLICES] as RecordableHistogram
  }
}
