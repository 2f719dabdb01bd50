/** Client-side throttling for each lane: a part of the calls is refused here, if most are refused there. */
import type { SpillwayError } from '../core/errors.js'
import type { Outcome } from '../core/outcome.js'
import type { Random } from '../core/random.js'
import { Acceptance, type CheckedThrottle, throttleError } from '../local/throttle.js'

/** Names of lanes may be many. */
const MOST_LANES = 1_000

export class LaneThrottles {
  readonly #name: string
  readonly #options: CheckedThrottle
  readonly #random: Random
  readonly #lanes = new Map<string, Acceptance>()

  constructor(name: string, options: CheckedThrottle, random: Random) {
    this.#name = name
    this.#options = options
    this.#random = random
  }

  /** Why a call is refused here, if it is. */
  refuse(lane: string, nowMs: number): SpillwayError | undefined {
    const acceptance = this.#lanes.get(lane)
    if (acceptance?.refuses(nowMs) !== true) return undefined
    return throttleError(this.#name, acceptance, nowMs)
  }

  ended(lane: string, nowMs: number, outcome: Outcome): void {
    let acceptance = this.#lanes.get(lane)
    if (acceptance === undefined) {
      if (this.#lanes.size >= MOST_LANES) this.#lanes.clear()
      acceptance = new Acceptance(this.#options, this.#random)
      this.#lanes.set(lane, acceptance)
    }
    acceptance.ended(nowMs, outcome)
  }

  snapshots(nowMs: number): ({ lane: string } & ReturnType<Acceptance['snapshot']>)[] {
    return Array.from(this.#lanes, ([lane, each]) => ({ lane, ...each.snapshot(nowMs) }))
  }
}
