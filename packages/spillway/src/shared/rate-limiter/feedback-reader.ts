/**
 * Reads the limit headers of vendor responses, decides whether they request a pause, and sends changes to the store.
 */
import { ERROR_KINDS, type VendorFailure } from '../../core/failures/error-kind.js'
import type { Clock } from '../../core/time/clock.js'
import type { MaybePromise, RefusedCall } from '../../store/port.js'
import type { LaneRegistry } from '../lanes/lane-registry.js'
import { FeedbackFilter, type FeedbackReport } from './feedback-filter.js'
import type { UnitLimit } from './options.js'
import type { LanePermit } from './permit.js'
import { readVendorHeaders, type VendorHeaders } from './vendor-headers.js'

/** A response of the vendor. */
export interface AnswerFeedback {
  readonly status: number
  readonly headers: unknown
  /** Why it has an error status, if that was understood: a 429 may be about one large request only. */
  readonly failure?: VendorFailure | undefined
}

export interface LaneFeedback extends FeedbackReport {
  grantedUs: number
  pauseUs: number | undefined
  refused?: RefusedCall | undefined
  /** Why the call failed, if that was understood. */
  failure?: Partial<VendorFailure> | undefined
}

export interface FeedbackReaderOptions {
  clock: Clock
  lanes: LaneRegistry
  basePauseMs: number
  /** Returns the time until which the lane is paused. */
  send(lane: string, feedback: LaneFeedback): MaybePromise<number>
}

export class FeedbackReader {
  readonly #options: FeedbackReaderOptions
  readonly #feedback: FeedbackFilter

  constructor(options: FeedbackReaderOptions) {
    this.#options = options
    this.#feedback = new FeedbackFilter(options.lanes)
  }

  /** Undefined if the response contains nothing new. */
  updateFromResponse(
    answer: AnswerFeedback,
    permit: LanePermit,
    limits: readonly UnitLimit[],
  ): MaybePromise<number> | undefined {
    const { clock, send } = this.#options
    const { lane, grantedUs } = permit
    const nowMs = clock.now()
    const good = answer.status < 400
    if (good && this.#feedback.readEnough(lane, nowMs)) return undefined
    const headers = readVendorHeaders(answer.headers, clock.wallMs())
    const throttled = asksForPause(answer, headers)
    const report = this.#feedback.read(lane, { headers, good, throttled }, limits, nowMs)
    if (report === undefined) return undefined
    const { failure } = answer
    // Headers are about the next request; knowledge about a whole quota takes precedence.
    const resetMs = failure?.kind === 'quota-exhausted' ? failure.retryAfterMs : undefined
    const pauseMs =
      resetMs ?? headers.retryAfterMs ?? failure?.retryAfterMs ?? this.fixedPauseMs(permit)
    const pauseUs = pauseMs === undefined ? undefined : Math.ceil(pauseMs * 1_000)
    const refused = isRateLimited(answer) ? permit.refused(limits) : undefined
    return send(lane, { grantedUs, pauseUs, refused, failure, ...report })
  }

  /** The pause after a 429 without `Retry-After`, if it must not grow. */
  fixedPauseMs({ basePauseOnly }: LanePermit): number | undefined {
    return basePauseOnly ? this.#options.basePauseMs : undefined
  }

  /** Forgets unused lanes. */
  sweep(nowMs: number): void {
    this.#feedback.sweep(nowMs)
  }

  close(): void {
    this.#feedback.close()
  }
}

/** A spent quota or an overloaded vendor does not reveal a limit. */
function isRateLimited({ status, failure }: AnswerFeedback): boolean {
  return failure === undefined ? status === 429 : failure.kind === 'rate-limited'
}

/** Also an overloaded vendor (503, 529) that sends `Retry-After`. */
function asksForPause(
  { status, failure }: AnswerFeedback,
  { retryAfterMs }: VendorHeaders,
): boolean {
  const throttled =
    failure === undefined ? status === 429 : ERROR_KINDS[failure.kind].outcome === 'throttled'
  return throttled || ((status === 503 || status === 529) && retryAfterMs !== undefined)
}
