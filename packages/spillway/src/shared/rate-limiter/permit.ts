/** The right to make one call, as it was booked. */
import type { UnitLimit } from './options.js'

/** What a call costs, or has cost, by unit. */
export type Cost = Readonly<Record<string, number>>

/** A correction, by the id of its limit: limits may be others by the time it is sent. */
export interface Correction {
  id: string
  stamp: number
  delta: number
}

export interface Permit {
  readonly lane: string
  /** What was booked, by unit. */
  readonly cost: Cost
  /**
   * Says what the call really cost. Less than was booked goes back to where it was booked, more
   * becomes bounded debt. Counts once; a permit never settled counts as spent.
   */
  settle(actual: Cost): void
  /** The call was not made. */
  refund(): void
}

export class LanePermit implements Permit {
  readonly lane: string
  /** Store time of the grant, which tells fresh from stale word of the vendor. */
  readonly grantedUs: number
  /** A 429 without `Retry-After` pauses the lane for `basePauseMs`, and does not lengthen later pauses. */
  basePauseOnly = false
  readonly #limits: readonly UnitLimit[]
  readonly #costs: readonly number[]
  readonly #stamps: readonly number[]
  readonly #onSettle: (lane: string, corrections: Correction[]) => void
  #settled = false

  constructor(
    lane: string,
    limits: readonly UnitLimit[],
    costs: readonly number[],
    stamps: readonly number[],
    grantedUs: number,
    onSettle: (lane: string, corrections: Correction[]) => void,
  ) {
    this.lane = lane
    this.grantedUs = grantedUs
    this.#limits = limits
    this.#costs = costs
    this.#stamps = stamps
    this.#onSettle = onSettle
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

  /** Nothing: it was not made. */
  #settleWith(actual: Cost | undefined): void {
    if (this.#settled) return
    this.#settled = true
    let corrections: Correction[] | undefined
    for (let index = 0; index < this.#limits.length; index++) {
      const { unit, spec } = this.#limits[index] as UnitLimit
      const booked = this.#costs[index] as number
      const units = actual === undefined ? 0 : (actual[unit] ?? booked)
      const delta = Math.max(0, Math.round(units)) - booked
      // A cost that is no number says nothing: what was booked stays.
      if (delta === 0 || !Number.isFinite(units)) continue
      corrections ??= []
      corrections.push({ id: spec.id, stamp: this.#stamps[index] as number, delta })
    }
    if (corrections !== undefined) this.#onSettle(this.lane, corrections)
  }
}
