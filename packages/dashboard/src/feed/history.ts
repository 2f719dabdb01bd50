/**
 * The last hour, in memory, with or without readers: the last minutes by the second, the rest in
 * steps of ten seconds. Flat arrays of numbers; a guard takes about thirty kilobytes.
 */
import { rounded } from '../shown.js'
import type { Hello } from '../wire/hello.js'
import type { GuardColumn, History, PodColumn } from '../wire/history.js'

export const KEEPS: Hello['keeps'] = {
  fineStepMs: 1_000,
  finePoints: 300,
  coarseStepMs: 10_000,
  coarsePoints: 360,
}

/** How short steps are combined into a longer one. */
type Summing = 'mean' | 'max'

export const GUARD_COLUMNS: Readonly<Record<GuardColumn, Summing>> = {
  calls: 'mean',
  refused: 'mean',
  failures: 'mean',
  throttled: 'mean',
  fallbacks: 'mean',
  active: 'max',
  waiting: 'max',
  p50Ms: 'max',
  p99Ms: 'max',
  breaker: 'max',
}

export const POD_COLUMNS: Readonly<Record<PodColumn, Summing>> = {
  pressure: 'max',
  loopMs: 'max',
  inFlight: 'max',
  waiting: 'max',
  pods: 'max',
  degraded: 'max',
  fleetCalls: 'mean',
  fleetRefused: 'mean',
  fleetInFlight: 'max',
  fleetWaiting: 'max',
}

/** The values of one step, by column; missing ones are unknown. */
export type Point<C extends string> = Partial<Record<C, number>>

class Steps<C extends string> {
  readonly stepMs: number
  readonly #points: number
  readonly #columns: readonly [C, Summing, Float32Array][]
  /** Number of short steps in each long step. */
  readonly #parts: Uint8Array
  /** Numbers of the first and the last recorded step. */
  #first = Number.POSITIVE_INFINITY
  #last = Number.NEGATIVE_INFINITY

  constructor(columns: Readonly<Record<C, Summing>>, stepMs: number, points: number) {
    this.stepMs = stepMs
    this.#points = points
    this.#columns = (Object.entries(columns) as [C, Summing][]).map(([name, summing]) => [
      name,
      summing,
      new Float32Array(points).fill(Number.NaN),
    ])
    this.#parts = new Uint8Array(points)
  }

  add(at: number, point: Point<C>): void {
    const step = Math.floor(at / this.stepMs)
    // The clock was set back, so later steps are invalid.
    if (step < this.#last) this.#clear()
    this.#openUntil(step)
    const place = step % this.#points
    const parts = Math.min(254, this.#parts[place] as number)
    this.#parts[place] = parts + 1
    for (const [name, summing, values] of this.#columns) {
      const value = point[name]
      if (value === undefined) continue
      const before = values[place] as number
      if (Number.isNaN(before)) values[place] = value
      else if (summing === 'max') values[place] = Math.max(before, value)
      else values[place] = (before * parts + value) / (parts + 1)
    }
  }

  /** Steps without a recorded value are empty. */
  #openUntil(step: number): void {
    if (this.#first > step) this.#first = step
    for (let each = Math.max(this.#last + 1, step - this.#points + 1); each <= step; each++) {
      this.#parts[each % this.#points] = 0
      for (const [, , values] of this.#columns) values[each % this.#points] = Number.NaN
    }
    this.#last = Math.max(this.#last, step)
  }

  #clear(): void {
    this.#first = Number.POSITIVE_INFINITY
    this.#last = Number.NEGATIVE_INFINITY
  }

  since(at: number): Pick<History, 'stepMs' | 'fromAt' | 'columns'> | undefined {
    const oldest = Math.max(this.#first, this.#last - this.#points + 1)
    const from = Math.max(oldest, Math.floor(at / this.stepMs))
    if (!(from <= this.#last)) return undefined
    const columns: History['columns'] = {}
    for (const [name, , values] of this.#columns) {
      const column: (number | null)[] = []
      for (let step = from; step <= this.#last; step++) {
        const value = values[step % this.#points] as number
        column.push(Number.isNaN(value) ? null : rounded(value))
      }
      columns[name] = column
    }
    return { stepMs: this.stepMs, fromAt: from * this.stepMs, columns }
  }
}

export class HistoryOf<C extends string> {
  readonly #fine: Steps<C>
  readonly #coarse: Steps<C>

  constructor(columns: Readonly<Record<C, Summing>>) {
    this.#fine = new Steps(columns, KEEPS.fineStepMs, KEEPS.finePoints)
    this.#coarse = new Steps(columns, KEEPS.coarseStepMs, KEEPS.coarsePoints)
  }

  add(at: number, point: Point<C>): void {
    this.#fine.add(at, point)
    this.#coarse.add(at, point)
  }

  /** The long steps first. */
  since(at: number, guard?: string): History[] {
    const of = guard === undefined ? undefined : { guard }
    return [this.#coarse.since(at), this.#fine.since(at)].flatMap((each) =>
      each === undefined ? [] : [{ ...of, ...each }],
    )
  }
}
