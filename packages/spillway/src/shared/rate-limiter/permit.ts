/** The right to make one call, as it was booked. */
import type { Settlement } from '../../store/port.js'
import type { UnitLimit } from './options.js'

/** What a call costs, or has cost, by unit. */
export type Cost = Readonly<Record<string, number>>

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
  readonly #limits: readonly UnitLimit[]
  readonly #costs: readonly number[]
  readonly #stamps: readonly number[]
  readonly #onSettle: (lane: string, settlements: Settlement[]) => void
  #settled = false

  constructor(
    lane: string,
    limits: readonly UnitLimit[],
    costs: readonly number[],
    stamps: readonly number[],
    grantedUs: number,
    onSettle: (lane: string, settlements: Settlement[]) => void,
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
    this.#settleWith((unit, booked) => actual[unit] ?? booked)
  }

  refund(): void {
    this.#settleWith(() => 0)
  }

  #settleWith(actualOf: (unit: string, booked: number) => number): void {
    if (this.#settled) return
    this.#settled = true
    const settlements: Settlement[] = []
    for (const [index, { unit }] of this.#limits.entries()) {
      const booked = this.#costs[index] as number
      const delta = Math.max(0, Math.round(actualOf(unit, booked))) - booked
      if (delta === 0 || Number.isNaN(delta)) continue
      settlements.push({ limit: index, stamp: this.#stamps[index] as number, delta })
    }
    if (settlements.length > 0) this.#onSettle(this.lane, settlements)
  }
}
