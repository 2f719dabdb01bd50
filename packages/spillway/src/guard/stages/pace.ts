/** Pace: at most `limit` starts in `windowMs` from this pod, to smooth bursts. */
import type { Details, SpillwayError } from '../../core/errors.js'
import type { Algorithm } from '../../local/rate-limiter/algorithm.js'
import type { CallQueue } from '../../shared/permit-queue/call-queue.js'
import type { Stage, StageAttempt, StageCall } from '../pipeline/stage.js'
import { paceError } from './refusal-errors.js'

export interface PaceStageOptions {
  readonly guard: string
  readonly pace: { limit: number; windowMs: number; burst: number | undefined }
  readonly bucket: Algorithm
  /** Calls that wait. */
  readonly calls: CallQueue
  /** Calls may wait for the pace. */
  readonly mayWait: boolean
  /** In shadow mode: refusals are reported, not enforced. */
  readonly shadow: boolean
  /** Attempts that run. */
  active(): number
}

export class PaceStage implements Stage {
  readonly name = 'pace'
  readonly scope = 'local'
  readonly per = 'attempt'
  /** Without a queue: a call is refused if no start is left in this window. */
  readonly check?: NonNullable<Stage['check']>
  /** Calls that have a slot, or whose permits are being requested, and have not started. */
  promised = 0
  readonly #options: PaceStageOptions
  readonly #bucket: Algorithm

  constructor(options: PaceStageOptions) {
    this.#options = options
    this.#bucket = options.bucket
    if (options.mayWait || options.shadow) return
    this.check = (call, nowMs) => this.#checkStarts(call, nowMs)
  }

  #checkStarts({ priority }: StageCall, nowMs: number): SpillwayError | undefined {
    const { calls, guard, active } = this.#options
    if (calls.hasPlace(priority, Math.max(0, this.startsLeft(nowMs)))) return undefined
    return paceError(guard, active(), this.waitMs(nowMs))
  }

  /** Starts that the pace allows now. */
  startsLeft(nowMs: number): number {
    return this.#bucket.remaining(nowMs) - this.promised
  }

  /** Milliseconds until the pace allows the next start. */
  waitMs(nowMs: number): number {
    return this.#bucket.waitMs(nowMs, 1, this.promised)
  }

  /** A start is spent when the attempt really starts. */
  started({ startMs }: StageAttempt): void {
    if (this.#options.shadow) return
    this.promised--
    this.#bucket.tryTake(startMs, 1)
  }

  cancel(): void {
    if (!this.#options.shadow) this.promised--
  }

  /** In shadow mode: the attempt starts in any case. */
  wouldRefuse({ startMs }: StageAttempt): SpillwayError | undefined {
    if (this.#bucket.tryTake(startMs, 1)) return undefined
    const { guard, active } = this.#options
    return paceError(guard, active() - 1, this.#bucket.waitMs(startMs, 1, 0))
  }

  passed(): Details {
    const { limit, windowMs, burst } = this.#options.pace
    return { limit, windowMs, ...(burst !== undefined && { burst }) }
  }
}
