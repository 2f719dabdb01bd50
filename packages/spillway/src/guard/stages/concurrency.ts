/**
 * Concurrency: one slot of this pod per attempt, and with `adaptive` a limit that each lane learns. A slot is
 * reserved while the store decides about the permits of a call. Slots are counted even without the option, because
 * load shedding and snapshots need the number.
 */
import { type Details, SpillwayError } from '../../core/errors.js'
import type { Outcome } from '../../core/outcome.js'
import type { Clock } from '../../core/time/clock.js'
import type { DrainTime } from '../../local/drain-time.js'
import type { LaneRegistry } from '../../shared/lanes/lane-registry.js'
import type { CallQueue } from '../../shared/permit-queue/call-queue.js'
import type { Capacity } from '../../shared/permit-queue/ports.js'
import type { Answer, Stage, StageAttempt, StageCall } from '../pipeline/stage.js'
import type { LaneConcurrency } from './lane-concurrency.js'
import type { PaceStage } from './pace.js'
import { concurrencyError } from './refusal-errors.js'

export interface ConcurrencyStageOptions {
  readonly guard: string
  readonly clock: Clock
  /** The limit of the pod; undefined without the option. */
  readonly limit: number | undefined
  /** In shadow mode: refusals are reported, not enforced. */
  readonly shadow: boolean
  /** How long abandoned work may keep its slot. */
  readonly graceMs: number
  /** Adaptive limits of the lanes. */
  readonly laneLimits: LaneConcurrency | undefined
  /** A lane whose calls hold slots is in use, and must not be dropped. */
  readonly registry: LaneRegistry
  /** A call starts only if the pace allows it as well; undefined without a pace that is enforced. */
  readonly pace: PaceStage | undefined
  /** Calls that wait. */
  readonly calls: CallQueue
  /** Calls may wait for a slot. */
  readonly mayWait: boolean
  /** Estimates waits from the durations of calls. */
  readonly drainTime: DrainTime
}

export class ConcurrencyStage implements Stage, Capacity {
  readonly name = 'concurrency'
  readonly scope = 'local'
  readonly per = 'attempt'
  /** Slots of this pod. */
  limit: number
  readonly lanes: LaneConcurrency | undefined
  /** Without a queue: a call is refused if no slot is free. */
  readonly check?: NonNullable<Stage['check']>
  /** Calls that have a slot. */
  active = 0
  /** Calls whose permits are being requested. */
  reserved = 0
  readonly #options: ConcurrencyStageOptions
  readonly #registry: LaneRegistry
  readonly #pace: PaceStage | undefined
  /** Work that has outlived its call and keeps a slot; each value is the function that frees the slot. */
  readonly #abandoned = new Map<Promise<unknown>, () => void>()
  #closed = false
  /** Called when a slot that was kept for abandoned work is free. */
  onFreedLater: () => void = () => {}

  constructor(options: ConcurrencyStageOptions) {
    const { limit = Number.POSITIVE_INFINITY, shadow, mayWait } = options
    this.#options = options
    this.limit = shadow ? Number.POSITIVE_INFINITY : limit
    this.lanes = options.laneLimits
    this.#registry = options.registry
    this.#pace = options.pace
    if (!mayWait) this.check = (call, nowMs) => this.#checkSlots(call, nowMs)
  }

  #checkSlots({ lane, priority }: StageCall, nowMs: number): SpillwayError | undefined {
    const { calls, guard } = this.#options
    const podSlots = this.limit - this.active - this.reserved
    const left = this.lanes === undefined ? podSlots : Math.min(podSlots, this.lanes.free(lane))
    if (calls.hasPlace(priority, Math.max(0, left))) return undefined
    return concurrencyError(guard, this.active, this.limit, this.nextFreeMs(nowMs))
  }

  /** `retryAfterMs` for a call that found all slots in use. */
  nextFreeMs(nowMs: number): number {
    return this.#options.drainTime.retryAfterMs(nowMs, 1, Math.max(1, this.active))
  }

  get full(): boolean {
    return this.active + this.reserved >= this.limit
  }

  free(nowMs: number, lane?: string): number {
    const podSlots = this.limit - this.active - this.reserved
    const slots =
      this.lanes === undefined || lane === undefined
        ? podSlots
        : Math.min(podSlots, this.lanes.free(lane))
    if (this.#pace === undefined || slots <= 0) return slots
    return Math.min(slots, this.#pace.startsLeft(nowMs))
  }

  /**
   * Slots in use and waiting calls, as a fraction of the slots: of this pod, or of the lane's own limit if that
   * fraction is larger. `ownWork`: work of the requesting call, whose slot does not count.
   */
  pressure(waiting: number, lane?: string, ownWork?: Promise<unknown>): number {
    const { calls } = this.#options
    const own = ownWork !== undefined && this.#abandoned.has(ownWork) ? 1 : 0
    const ofPod = (this.active + this.reserved + waiting - own) / this.limit
    if (this.lanes === undefined) return ofPod
    if (lane === undefined) return Math.max(ofPod, this.lanes.used)
    return Math.max(ofPod, this.lanes.pressure(lane, calls.lengthOf(lane) - own))
  }

  paceWaitMs(nowMs: number): number {
    return this.#pace === undefined || this.full ? 0 : this.#pace.waitMs(nowMs)
  }

  reserve(count: number, lane: string): void {
    this.reserved += count
    if (this.#pace !== undefined) this.#pace.promised += count
    this.#registry.hold(lane, count)
    this.lanes?.enter(lane, count)
  }

  giveUp(lane: string): void {
    this.reserved--
    if (this.#pace !== undefined) this.#pace.promised--
    this.#registry.release(lane)
    this.lanes?.leave(lane)
  }

  admit(): void {
    this.reserved--
    this.active++
  }

  start(lane: string): void {
    this.active++
    if (this.#pace !== undefined) this.#pace.promised++
    this.#registry.hold(lane, 1)
    this.lanes?.enter(lane, 1)
  }

  /** The duration of a failure or an abort does not reflect the load. */
  answered({ laneInUse, startMs }: StageAttempt, answer: Answer): void {
    if (this.lanes === undefined) return
    const { outcome } = answer.verdict
    const dropped = isOverload(answer)
    if (!dropped && outcome !== 'success' && outcome !== 'slow') return
    this.lanes.answered(laneInUse, this.#options.clock.now(), startMs, dropped)
  }

  /** A call that timed out keeps its slot while its work continues, because the socket is still open. */
  release(
    { laneInUse }: StageAttempt,
    _outcome: Outcome,
    unfinished: Promise<unknown> | undefined,
  ): void {
    if (unfinished !== undefined && !this.#closed) return this.#freeLater(laneInUse, unfinished)
    this.cancel(laneInUse)
  }

  /** The slot is free again. */
  cancel(lane: string): void {
    this.active--
    this.#registry.release(lane)
    this.lanes?.leave(lane)
  }

  /** In shadow mode: the attempt, which holds a slot already, starts in any case. */
  wouldRefuse(): SpillwayError | undefined {
    const { limit = Number.POSITIVE_INFINITY, guard, clock } = this.#options
    if (this.active <= limit) return undefined
    return concurrencyError(guard, this.active - 1, limit, this.nextFreeMs(clock.now()))
  }

  passed(): Details | undefined {
    if (this.#options.limit === undefined && this.lanes === undefined) return undefined
    return { active: this.active, limit: this.limit }
  }

  close(): void {
    this.lanes?.close()
  }

  /** The guard closes: slots of abandoned work are free from now on. */
  freeAbandoned(): void {
    this.#closed = true
    for (const free of this.#abandoned.values()) free()
  }

  #freeLater(lane: string, unfinished: Promise<unknown>): void {
    const { clock, graceMs } = this.#options
    const free = () => {
      if (!this.#abandoned.delete(unfinished)) return
      timer.cancel()
      this.cancel(lane)
      this.onFreedLater()
    }
    const timer = clock.schedule(graceMs, free)
    timer.unref()
    this.#abandoned.set(unfinished, free)
    unfinished.then(free, free)
  }
}

/** Statuses of an overloaded downstream, beside 429. */
const OVERLOADED = new Set([503, 504, 529])

/** The downstream refused because it has too much to do, or did not answer in time. */
function isOverload({ end, response, verdict: { outcome } }: Answer): boolean {
  if (outcome === 'throttled') return true
  if (outcome !== 'failure') return false
  const error = 'error' in end ? end.error : undefined
  if (error instanceof SpillwayError) return error.code === 'CALL_TIMEOUT'
  return OVERLOADED.has(response?.status ?? 0)
}
