/** Client-side throttling, lane by lane: the more calls the downstream rejects, the more are refused here. */
import type { Details, SpillwayError } from '../../core/errors.js'
import type { Random } from '../../core/random.js'
import type { Clock } from '../../core/time/clock.js'
import {
  Acceptance,
  type CheckedThrottle,
  type ThrottleSnapshot,
  throttleError,
} from '../../local/throttle.js'
import { LaneMap, type LaneRegistry } from '../../shared/lanes/lane-registry.js'
import type { Answer, Stage, StageAttempt, StageCall } from '../pipeline/stage.js'

type Began = ReturnType<Acceptance['began']>

export interface LaneThrottleSnapshot extends ThrottleSnapshot {
  lane: string
}

export class ThrottleStage implements Stage {
  readonly name = 'throttle'
  readonly scope = 'local'
  readonly per = 'attempt'
  readonly forJobs = true
  readonly #guard: string
  readonly #clock: Clock
  readonly #random: Random
  readonly #lanes: LaneMap<Acceptance>
  readonly #shadow: boolean

  constructor(
    guard: string,
    options: CheckedThrottle,
    clock: Clock,
    random: Random,
    lanes: LaneRegistry,
    shadow: boolean,
  ) {
    this.#guard = guard
    this.#clock = clock
    this.#random = random
    this.#shadow = shadow
    this.#lanes = new LaneMap(lanes, { create: () => new Acceptance(options) })
  }

  check(call: StageCall, nowMs: number): SpillwayError | undefined {
    const acceptance = this.#lanes.get(call.lane)
    const refusal = acceptance?.refusal(nowMs) ?? 0
    if (acceptance === undefined || refusal === 0) return undefined
    if (this.#random() >= refusal) return undefined
    // In shadow mode the call runs, and counts when it ends.
    if (!this.#shadow) acceptance.refused(nowMs)
    return throttleError(this.#guard, acceptance, nowMs, this.#random)
  }

  started({ laneInUse, startMs, kept }: StageAttempt, place: number): void {
    kept[place] = this.#lanes.of(laneInUse).began(startMs)
  }

  answered({ laneInUse, kept }: StageAttempt, { verdict }: Answer, place: number): void {
    const began = kept[place] as Began
    this.#lanes.of(laneInUse).ended(this.#clock.now(), verdict.outcome, began)
  }

  passed({ lane }: StageCall, _permits: unknown, nowMs: number): Details {
    const { requests, accepts } = this.#lanes.get(lane)?.snapshot(nowMs) ?? NOTHING_YET
    return { requests, accepts }
  }

  snapshots(nowMs: number): LaneThrottleSnapshot[] {
    return Array.from(this.#lanes, ([lane, each]) => ({ lane, ...each.snapshot(nowMs) }))
  }

  close(): void {
    this.#lanes.close()
  }
}

const NOTHING_YET: ThrottleSnapshot = { requests: 0, accepts: 0, refusal: 0 }
