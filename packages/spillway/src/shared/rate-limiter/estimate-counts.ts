/** How well the reserved costs of settled permits matched the actual ones, by unit. */

/** Upper bounds of reserved / actual, and the name of each range. The last one has no bound. */
const RANGES = [
  [0.5, 'under 0.5'],
  [0.8, '0.5 to 0.8'],
  [1.25, '0.8 to 1.25'],
  [2, '1.25 to 2'],
  [Number.POSITIVE_INFINITY, 'over 2'],
] as const
/** A range of reserved / actual cost. */
export type EstimateRange = (typeof RANGES)[number][1]
/** Bounds the map. Other options of the guard may bring other units. */
const MOST_UNITS = 20

/** Reserved against actual cost of calls, in one unit. */
export interface EstimateSnapshot {
  /** The unit of a limit, such as `tokens`. */
  unit: string
  /** Calls that were settled with an actual cost. */
  calls: number
  /** What was reserved for them. */
  reserved: number
  /** What they have cost. */
  actual: number
  /** Reserved / actual cost of the last calls; half of it comes from the last 35. */
  recentRatio: number
  /** Calls by reserved / actual cost. */
  ranges: Record<EstimateRange, number>
}

interface Counts extends Omit<EstimateSnapshot, 'recentRatio'> {
  /** Sums in which older calls count less. */
  recent: { reserved: number; actual: number }
}

/** Decay of a call's weight in `recent` with each later call. */
const FADING = 0.98

export class EstimateCounts {
  readonly #byUnit = new Map<string, Counts>()

  /** A cost of 0 was no estimate, or the call was not charged. */
  add(unit: string, reserved: number, actual: number): void {
    if (!(reserved > 0) || !(actual > 0) || unit === 'requests') return
    const counts = this.#byUnit.get(unit) ?? this.#create(unit)
    if (counts === undefined) return
    counts.calls++
    counts.reserved += reserved
    counts.actual += actual
    counts.recent.reserved = FADING * counts.recent.reserved + reserved
    counts.recent.actual = FADING * counts.recent.actual + actual
    const range = RANGES.find(([bound]) => reserved / actual < bound) ?? RANGES[RANGES.length - 1]
    counts.ranges[(range as (typeof RANGES)[number])[1]]++
  }

  snapshot(): EstimateSnapshot[] {
    return [...this.#byUnit.values()].map(({ recent, ranges, ...sums }) => ({
      ...sums,
      recentRatio: recent.reserved / recent.actual,
      ranges: { ...ranges },
    }))
  }

  #create(unit: string): Counts | undefined {
    if (this.#byUnit.size >= MOST_UNITS) return undefined
    const ranges = Object.fromEntries(RANGES.map(([, name]) => [name, 0]))
    const counts = {
      unit,
      calls: 0,
      reserved: 0,
      actual: 0,
      recent: { reserved: 0, actual: 0 },
      ranges: ranges as Record<EstimateRange, number>,
    }
    this.#byUnit.set(unit, counts)
    return counts
  }
}
