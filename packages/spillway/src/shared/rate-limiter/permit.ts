/** A permit for one call, with the units booked for it. */
import type { RefusedCall, TakeReply } from '../../store/port.js'
import type { EstimateCounts } from './estimate-counts.js'
import type { UnitLimit } from './options.js'

/** The cost of a call, by unit. */
export type Cost = Readonly<Record<string, number>>

/** A reply of the store or of an outage rule, with the limits it was requested under. */
export type LimitReply = TakeReply & {
  under: readonly UnitLimit[]
  /** Decided by this pod just now, because the store is unreachable. */
  alone?: boolean
  /** When the request was sent, if the store is remote: a first request waits until the store is connected. */
  sentMs?: number
}

/** A correction of a booked cost. It names its limit by id, because limits may change before it is sent. */
export interface Correction {
  id: string
  stamp: number
  delta: number
}

/** Permission for one call, to be settled or returned. */
export interface Permit {
  /** The lane it is for. */
  readonly lane: string
  /** The booked cost, by unit. */
  readonly cost: Cost
  /**
   * Settles the permit with the actual cost. Unused units become free again, excess units become bounded debt.
   * Only the first settlement counts; a permit that is never settled counts as spent.
   */
  settle(actual: Cost): void
  /** Returns the permit: the call was not made. */
  refund(): void
}

const NONE: readonly Correction[] = []

export class LanePermit implements Permit {
  readonly lane: string
  /** Store time of the grant. Vendor feedback on an older permit is stale. */
  readonly grantedUs: number
  /** A 429 without `Retry-After` pauses the lane for `basePauseMs`, and does not lengthen later pauses. */
  basePauseOnly = false
  readonly #limits: readonly UnitLimit[]
  readonly #costs: readonly number[]
  readonly #stamps: readonly number[]
  readonly #onSettle: (lane: string, corrections: Correction[]) => void
  readonly #estimates: EstimateCounts
  #settled = false
  /** Changes that were sent to the store since the permit was granted. */
  #corrections: readonly Correction[] = NONE
  /** The vendor refused the call, and the whole cost was refunded. */
  #isReturned = false

  constructor(
    lane: string,
    limits: readonly UnitLimit[],
    costs: readonly number[],
    stamps: readonly number[],
    grantedUs: number,
    onSettle: (lane: string, corrections: Correction[]) => void,
    estimates: EstimateCounts,
  ) {
    this.lane = lane
    this.grantedUs = grantedUs
    this.#limits = limits
    this.#costs = costs
    this.#stamps = stamps
    this.#onSettle = onSettle
    this.#estimates = estimates
  }

  get cost(): Cost {
    return Object.fromEntries(
      this.#limits.map(({ unit }, index) => [unit, this.#costs[index] as number]),
    )
  }

  settle(actual: Cost): void {
    this.#settleWith(actual)
  }

  refund(): void {
    this.#settleWith(undefined)
  }

  /**
   * The vendor refused the call. Returns the report from which the store learns, including the refund; undefined if
   * no limit learns.
   */
  refused(limits: readonly UnitLimit[]): RefusedCall | undefined {
    if (!limits.some(({ spec }) => spec.learn === true)) return undefined
    const known = limits.map(({ spec }) =>
      this.#limits.findIndex((each) => each.spec.id === spec.id),
    )
    const of = (numbers: readonly number[]) => known.map((index) => numbers[index] ?? 0)
    const costs = of(this.#costs)
    const booked = this.#isReturned ? costs.map(() => 0) : of(this.#booked())
    // Nothing is left to settle.
    this.#settled = true
    this.#isReturned = true
    return { costs, booked, stamps: of(this.#stamps) }
  }

  /** Undefined: the call was not made. */
  #settleWith(actual: Cost | undefined): void {
    if (this.#settled) return
    this.#settled = true
    let corrections: Correction[] | undefined
    for (let index = 0; index < this.#limits.length; index++) {
      const { unit, spec } = this.#limits[index] as UnitLimit
      const booked = this.#costs[index] as number
      const units = actual === undefined ? 0 : (actual[unit] ?? booked)
      if (actual?.[unit] !== undefined) this.#estimates.add(unit, booked, units)
      const delta = Math.max(0, Math.round(units)) - booked
      // Without a number the booked cost stays.
      if (delta === 0 || !Number.isFinite(units)) continue
      corrections ??= []
      corrections.push({ id: spec.id, stamp: this.#stamps[index] as number, delta })
    }
    if (corrections === undefined) return
    this.#corrections = corrections
    this.#onSettle(this.lane, corrections)
  }

  /** The cost under each limit, after the corrections. */
  #booked(): number[] {
    return this.#limits.map(({ spec }, index) => {
      const correction = this.#corrections.find(({ id }) => id === spec.id)
      return (this.#costs[index] as number) + (correction?.delta ?? 0)
    })
  }
}
