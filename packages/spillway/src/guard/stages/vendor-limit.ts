/**
 * The vendor's limits, shared by all pods. Calls wait in the queue for their permits. This stage refuses calls that
 * cannot wait long enough, and passes the vendor's rate-limit headers to the limiter. Without `limits` there is only
 * this pod's pause after a 429.
 */

import type { Details, SpillwayError } from '../../core/errors.js'
import { longestPauseMs } from '../../core/failures/error-kind.js'
import type { Verdict } from '../../core/outcome.js'
import { isThenable, swallow } from '../../core/thenable.js'
import type { Clock } from '../../core/time/clock.js'
import { isOverflowLane } from '../../shared/lanes/lane-names.js'
import type { LimitClient } from '../../shared/rate-limiter/limit-client.js'
import type { LanePermit, LimitReply } from '../../shared/rate-limiter/permit.js'
import type { MaybePromise } from '../../store/port.js'
import type { Answer, Permits, Stage, StageAttempt, StageCall } from '../pipeline/stage.js'
import type { QueueStage } from './queue.js'
import { limitedError } from './refusal-errors.js'

export interface VendorLimitStageOptions {
  readonly guard: string
  readonly clock: Clock
  /** Undefined without the option `limits`. */
  readonly limits: LimitClient | undefined
  readonly queue: QueueStage
  readonly basePauseMs: number
  readonly maxPauseMs: number
  /** In shadow mode the stage pauses nothing. */
  readonly shadow: boolean
}

export class VendorLimitStage implements Stage {
  readonly name = 'vendor-limit'
  readonly scope = 'shared'
  readonly per = 'attempt'
  readonly #options: VendorLimitStageOptions

  constructor(options: VendorLimitStageOptions) {
    this.#options = options
  }

  /** The lane is blocked for longer than this call can wait. */
  check(call: StageCall, nowMs: number): SpillwayError | undefined {
    const { limits, queue } = this.#options
    // Checked and computed now: the caller may change the object later.
    if (call.cost !== undefined) limits?.settings.of(call.lane).costsOf(call)
    return queue.dispatcher.blocks.refusalOf(call, nowMs)
  }

  answered({ laneInUse, permits }: StageAttempt, { verdict, response }: Answer): void {
    const throttled = verdict.outcome === 'throttled'
    if (!throttled && response === undefined) return
    // A 429 that `classify` ignores is not about these limits: the quota of a key is spent, for example.
    if (verdict.outcome === 'ignored' && response?.status === 429) return
    const { limits } = this.#options
    if (limits === undefined) {
      if (throttled) this.#pauseHere(laneInUse, verdict)
    } else if (permits.permit !== undefined)
      this.#applyFeedback(limits, response, verdict, permits.permit)
  }

  cancel(_lane: string, { permit }: Permits): void {
    permit?.refund()
  }

  /**
   * In shadow mode the permit is requested beside the attempt, so that the limit adds no latency. A granted permit
   * counts; a store that does not answer has no effect.
   */
  wouldRefuse({
    laneInUse: lane,
    options,
    permits,
  }: StageAttempt): MaybePromise<SpillwayError | undefined> {
    const { limits, guard: name } = this.#options
    if (limits === undefined) return undefined
    const call = { cost: options.cost, costs: [], costsUnder: undefined }
    const costs = limits.settings.of(lane).costsOf(call)
    const decided = (reply: LimitReply): SpillwayError | undefined => {
      if (reply.granted > 0) {
        permits.permit = limits.permits.createPermit(lane, costs, reply)
        return undefined
      }
      return limitedError({
        name,
        lane,
        retryAfterMs: reply.waitUs / 1_000,
        paused: reply.paused,
        outageReason: limits.outageReason,
        queueTimeoutMs: undefined,
        limits: reply.under,
        pool: limits.settings.of(lane).pool,
        cost: options.cost,
        costs,
        left: reply.left,
      })
    }
    try {
      const reply = limits.permits.take(lane, [costs], undefined, 0)
      return isThenable(reply) ? reply.then(decided, () => undefined) : decided(reply)
    } catch {
      return undefined
    }
  }

  passed({ options }: StageCall, permits: Permits | undefined): Details | undefined {
    const { limits } = this.#options
    if (limits === undefined) return undefined
    return { byOutageRule: limits.alone, ...(permits?.permit !== undefined && options.cost) }
  }

  /** Feedback of the vendor about its limits: response headers, or a throttled call. */
  #applyFeedback(
    limits: LimitClient,
    response: Answer['response'],
    { outcome, retryAfterMs, kind }: Verdict,
    permit: LanePermit,
  ): void {
    try {
      if (response !== undefined) {
        const { status, headers } = response
        const failure = kind && { kind, retryAfterMs }
        swallow(limits.updateFromResponse({ status, headers, failure }, permit))
      } else if (outcome === 'throttled') {
        swallow(limits.throttled(permit, { ...(kind && { kind }), retryAfterMs }))
      }
    } catch {
      // The call has ended: a report that cannot be sent does not fail it.
    }
    const { queue, clock, shadow } = this.#options
    if (shadow || outcome !== 'throttled' || retryAfterMs === undefined) return
    // The store decides whether the lane needs the pause, or a lower limit is enough.
    if (kind !== 'quota-exhausted' && limits.settings.learns(permit.lane)) return
    const longestMs = this.#longestPauseMs(permit.lane, kind, retryAfterMs)
    const untilMs = clock.now() + Math.min(retryAfterMs, longestMs)
    queue.dispatcher.pauseUntil(permit.lane, untilMs)
  }

  /** Without shared limits only this pod pauses. */
  #pauseHere(lane: string, { retryAfterMs, kind }: Verdict): void {
    const { queue, clock, basePauseMs, shadow } = this.#options
    if (shadow) return
    const longestMs = this.#longestPauseMs(lane, kind, retryAfterMs)
    const pauseMs = Math.min(retryAfterMs ?? basePauseMs, longestMs)
    queue.dispatcher.pauseUntil(lane, clock.now() + pauseMs)
  }

  /** Many names share the overflow lane, so the reset time of one name does not extend its pause. */
  #longestPauseMs(lane: string, kind: Verdict['kind'], retryAfterMs: number | undefined): number {
    const { maxPauseMs } = this.#options
    if (kind === undefined || isOverflowLane(lane)) return maxPauseMs
    return longestPauseMs({ kind, retryAfterMs }, maxPauseMs)
  }
}
