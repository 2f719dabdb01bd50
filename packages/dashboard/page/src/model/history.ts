/**
 * The last hour as columns of numbers, in two steps: fine for the last minutes, coarse for the rest. A track is
 * a ring that is filled by time, so that a gap in the feed is a gap in the chart.
 */
import type { GuardColumn, History, PodColumn } from '../wire'

export class Track {
  readonly stepMs: number
  readonly #points: number
  /** The number of the newest step: its time divided by the step. */
  #newest = -1
  readonly #columns = new Map<string, Float64Array>()

  constructor(stepMs: number, points: number) {
    this.stepMs = stepMs
    this.#points = points
  }

  /** Sets the values of the step that contains `at`; later values replace earlier ones. */
  set(at: number, values: Readonly<Record<string, number | undefined>>): void {
    const step = Math.floor(at / this.stepMs)
    if (step <= this.#newest - this.#points) return
    this.#advance(step)
    for (const [name, value] of Object.entries(values)) {
      if (value !== undefined) this.#column(name)[step % this.#points] = value
    }
  }

  /** Values of the step that contains `at`. */
  get(at: number, name: string): number | undefined {
    const step = Math.floor(at / this.stepMs)
    if (step > this.#newest || step <= this.#newest - this.#points) return undefined
    const value = this.#columns.get(name)?.[step % this.#points]
    return value === undefined || Number.isNaN(value) ? undefined : value
  }

  load({ fromAt, stepMs, columns }: History): void {
    for (const [name, values] of Object.entries(columns)) {
      for (const [index, value] of values.entries()) {
        if (value !== null) this.set(fromAt + index * stepMs, { [name]: value })
      }
    }
  }

  /** Seconds, and a row for each name; `null` where nothing is known. */
  read(names: readonly string[], fromAt: number, toAt: number): [number[], ...(number | null)[][]] {
    const last = Math.floor(toAt / this.stepMs)
    const first = Math.max(Math.ceil(fromAt / this.stepMs), last - this.#points + 1)
    const times: number[] = []
    for (let step = first; step <= last; step++) times.push((step * this.stepMs) / 1_000)
    const rows = names.map((name) => {
      const column = this.#columns.get(name)
      return times.map((_, index) => {
        const step = first + index
        const known = step <= this.#newest && step > this.#newest - this.#points
        const value = known ? column?.[step % this.#points] : undefined
        return value === undefined || Number.isNaN(value) ? null : value
      })
    })
    return [times, ...rows]
  }

  #advance(step: number): void {
    if (step <= this.#newest) return
    const cleared = Math.min(this.#points, this.#newest === -1 ? this.#points : step - this.#newest)
    for (const column of this.#columns.values()) {
      for (let back = 0; back < cleared; back++) column[(step - back) % this.#points] = Number.NaN
    }
    this.#newest = step
  }

  #column(name: string): Float64Array {
    let column = this.#columns.get(name)
    if (column === undefined) {
      column = new Float64Array(this.#points).fill(Number.NaN)
      this.#columns.set(name, column)
    }
    return column
  }
}

/**
 * Columns with rates: a longer step has their mean. Of other columns it has the maximum, so that peaks stay visible.
 */
const MEANS: ReadonlySet<string> = new Set<GuardColumn | PodColumn>([
  'calls',
  'refused',
  'failures',
  'throttled',
  'fallbacks',
  'fleetCalls',
  'fleetRefused',
])

/** One track of each step. */
export class TwoTracks {
  readonly fine: Track
  readonly coarse: Track
  #sums = new Map<string, { sum: number; count: number }>()
  #step = -1

  constructor(keeps: {
    fineStepMs: number
    finePoints: number
    coarseStepMs: number
    coarsePoints: number
  }) {
    this.fine = new Track(keeps.fineStepMs, keeps.finePoints)
    this.coarse = new Track(keeps.coarseStepMs, keeps.coarsePoints)
  }

  load(history: History): void {
    const track = history.stepMs <= this.fine.stepMs ? this.fine : this.coarse
    track.load(history)
  }

  /** A coarse step has the mean or the maximum of its fine steps so far, or the last value of a gauge. */
  set(at: number, values: Readonly<Record<string, number | undefined>>): void {
    this.fine.set(at, values)
    const step = Math.floor(at / this.coarse.stepMs)
    if (step !== this.#step) {
      this.#sums = new Map()
      this.#step = step
    }
    const all: Record<string, number> = {}
    for (const [name, value] of Object.entries(values)) {
      if (value === undefined) continue
      if (!MEANS.has(name)) {
        all[name] = Math.max(value, this.coarse.get(at, name) ?? value)
        continue
      }
      const { sum, count } = this.#sums.get(name) ?? { sum: 0, count: 0 }
      this.#sums.set(name, { sum: sum + value, count: count + 1 })
      all[name] = (sum + value) / (count + 1)
    }
    this.coarse.set(at, all)
  }

  /** The track with the shortest steps that covers this time. */
  for(rangeMs: number, finePoints: number): Track {
    return rangeMs <= finePoints * this.fine.stepMs ? this.fine : this.coarse
  }
}
