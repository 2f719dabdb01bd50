/**
 * Stages in shadow: they decide and report as they always would, and refuse nobody and let nobody wait. For
 * finding out what a limit would do before it does it. Of shared limits the store is asked beside the call, not
 * before it, so that trying something out slows nothing down.
 */
import type { SpillwayError } from '../core/errors.js'
import { callSafely, emit, listening } from '../core/events.js'
import { isThenable } from '../core/thenable.js'
import type { FleetBreaker } from '../shared/circuit-breaker/fleet-breaker.js'
import type { LimitReply } from '../shared/rate-limiter/limit-client.js'
import type { LanePermit } from '../shared/rate-limiter/permit.js'
import type { ShadowStage } from './order.js'
import { busyError, limitedError, shortageOf } from './refusals.js'
import type { RunOptions } from './run-options.js'
import type { LimitStage } from './shared-stages.js'
import { Slots } from './slots.js'
import type { Tally } from './tally.js'

/** What an attempt holds, and gives back. */
type Permitted = { permit: LanePermit | undefined }
/** What would have been refused with what, for whoever made the call. */
type Caller = Pick<RunOptions, 'onShadow' | 'cost'>

export interface ShadowOptions {
  readonly name: string
  readonly stages: ReadonlySet<ShadowStage>
  readonly tally: Tally
  readonly breaker: FleetBreaker | undefined
  /** Those that nobody waits for. */
  readonly limits: LimitStage | undefined
  /** What this pod has in fact, and what it would have to give. */
  readonly slots: Slots
  readonly shadowSlots: Slots | undefined
}

export class Shadow {
  readonly #options: ShadowOptions

  constructor(options: ShadowOptions) {
    this.#options = options
  }

  /** The limits that are only counted. */
  get limits(): LimitStage | undefined {
    return this.#options.limits
  }

  /** Whether this refusal is only reported, which is done. */
  spares(error: SpillwayError, lane: string, caller: Caller): boolean {
    const { stages, name, tally } = this.#options
    const { stage, code, retryAfterMs, details } = error
    if (!stages.has(stage as ShadowStage)) return false
    tally.wouldRefuse(error)
    if (listening()) {
      emit({ type: 'guard.would-have-refused', name, lane, stage, code, retryAfterMs, details })
    }
    const { onShadow } = caller
    if (onShadow !== undefined) callSafely(name, 'onShadow', () => onShadow(error), undefined)
    return true
  }

  /** Whether the circuit is open; it stands in nobody's way. */
  noteOpen(lane: string, caller: Caller): void {
    const { breaker, stages } = this.#options
    if (breaker === undefined || !stages.has('breaker')) return
    const error = breaker.shadowRefusal(lane)
    if (error !== undefined) this.spares(error, lane, caller)
  }

  /** An attempt begins. Its permit comes later, if the limits have one for it. */
  begin(lane: string, admission: Permitted, nowMs: number, caller: Caller): void {
    this.#notePod(lane, nowMs, caller)
    const { limits } = this.#options
    if (limits !== undefined) this.#noteLimits(limits, lane, admission, caller)
  }

  #notePod(lane: string, nowMs: number, caller: Caller): void {
    const { name, slots, shadowSlots } = this.#options
    if (shadowSlots === undefined) return
    // All but this one.
    shadowSlots.active = slots.active - 1
    if (shadowSlots.free(nowMs) > 0) return shadowSlots.take(nowMs)
    const stage = shadowSlots.paceWaitMs(nowMs) > 0 ? 'pace' : 'concurrency'
    this.spares(busyError(name, stage, shadowSlots, nowMs), lane, caller)
  }

  #noteLimits(limits: LimitStage, lane: string, admission: Permitted, caller: Caller): void {
    const { name } = this.#options
    const costs = limits.costsOf(caller.cost)
    const answered = (trip: LimitReply): void => {
      if (trip.granted > 0) {
        admission.permit = limits.createPermit(lane, costs, trip)
        return
      }
      const error = limitedError({
        name,
        lane,
        retryAfterMs: trip.waitUs / 1_000,
        paused: trip.paused,
        alone: trip.alone === true,
        shortage: shortageOf(trip.under, costs, trip.left),
      })
      this.spares(error, lane, caller)
    }
    try {
      const reply = limits.take(lane, [costs], undefined, 0)
      // A store that does not answer has said nothing.
      if (isThenable(reply)) reply.then(answered, () => {})
      else answered(reply)
    } catch {
      // The same of one that is in this process.
    }
  }
}

/** Slots as they would be, of the stages that are in shadow; nothing, if none of them is. */
export function shadowSlotsOf(
  stages: ReadonlySet<ShadowStage>,
  limit: number | undefined,
  pace: ConstructorParameters<typeof Slots>[1],
): Slots | undefined {
  const limited = stages.has('concurrency') ? limit : undefined
  const paced = stages.has('pace') ? pace : undefined
  if (limited === undefined && paced === undefined) return undefined
  return new Slots(() => limited ?? Number.POSITIVE_INFINITY, paced)
}
