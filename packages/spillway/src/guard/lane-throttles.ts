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

  /** An attempt begins. Returns the function that is called with its outcome. */
  began(lane: string, startMs: number): (nowMs: number, outcome: Outcome) => void {
    const acceptance = this.#acceptanceOf(lane)
    const call = acceptance.began(startMs)
    return (nowMs, outcome) => acceptance.ended(nowMs, outcome, call)
  }

  #acceptanceOf(lane: string): Acceptance {
    let acceptance = this.#lanes.get(lane)
    if (acceptance === undefined) {
      if (this.#lanes.size >= MOST_LANES) this.#lanes.clear()
      acceptance = new Acceptance(this.#options, this.#random)
      this.#lanes.set(lane, acceptance)
    }
    return acceptance
  }

  snapshots(nowMs: number): ({ lane: string } & ReturnType<Acceptance['snapshot']>)[] {
    return Array.from(this.#lanes, ([lane, each]) => ({ lane, ...each.snapshot(nowMs) }))
  }
}
