/** Client-side throttling by lane: the more calls the downstream rejects, the more are refused here. */
import type { SpillwayError } from '../core/errors.js'
import type { Outcome } from '../core/outcome.js'
import type { Random } from '../core/random.js'
import { Acceptance, type CheckedThrottle, throttleError } from '../local/throttle.js'
import { LaneMap } from '../shared/lanes/lane-map.js'
import type { LaneRegistry } from '../shared/lanes/lane-registry.js'

export class LaneThrottles {
  readonly #name: string
  readonly #lanes: LaneMap<Acceptance>

  constructor(name: string, options: CheckedThrottle, random: Random, lanes: LaneRegistry) {
    this.#name = name
    this.#lanes = new LaneMap(lanes, { create: () => new Acceptance(options, random) })
  }

  /** The error if the call is refused here. */
  refuse(lane: string, nowMs: number): SpillwayError | undefined {
    const acceptance = this.#lanes.get(lane)
    if (acceptance?.refuses(nowMs) !== true) return undefined
    return throttleError(this.#name, acceptance, nowMs)
  }

  /** An attempt begins. Returns the function that is called with its outcome. */
  began(lane: string, startMs: number): (nowMs: number, outcome: Outcome) => void {
    const acceptance = this.#lanes.of(lane)
    const call = acceptance.began(startMs)
    return (nowMs, outcome) => acceptance.ended(nowMs, outcome, call)
  }

  snapshots(nowMs: number): ({ lane: string } & ReturnType<Acceptance['snapshot']>)[] {
    return Array.from(this.#lanes, ([lane, each]) => ({ lane, ...each.snapshot(nowMs) }))
  }

  close(): void {
    this.#lanes.close()
  }
}
