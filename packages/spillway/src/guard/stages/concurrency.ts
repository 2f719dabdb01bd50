/**
 * Concurrency: one slot of this pod for each attempt, and with `adaptive` a limit that each lane learns. The
 * slot is counted even without the option, because load shedding and snapshots need the number.
 */
import { type Details, SpillwayError } from '../../core/errors.js'
import type { Outcome } from '../../core/outcome.js'
import type { Clock } from '../../core/time/clock.js'
import type { Answer, Permits, Stage, StageAttempt, StageCall } from '../pipeline/stage.js'
import type { Slots } from '../queue/slots.js'
import type { QueueRoom } from './pace.js'
import { concurrencyError } from './refusal-errors.js'

export interface ConcurrencyStageOptions {
  readonly guard: string
  readonly clock: Clock
  readonly slots: Slots
  readonly queue: QueueRoom
  /** The limit of the pod; undefined without the option. */
  readonly limit: number | undefined
  /** How long abandoned work may keep its slot. */
  readonly graceMs: number
}

export class ConcurrencyStage implements Stage {
  readonly name = 'concurrency'
  readonly scope = 'local'
  readonly per = 'attempt'
  readonly #options: ConcurrencyStageOptions
  /** Each frees, before its time, a slot whose work has outlived its call. */
  readonly #abandoned = new Set<() => void>()
  #closed = false
  /** Called when a slot that was kept for abandoned work is free. */
  onFreedLater: () => void = () => {}

  constructor(options: ConcurrencyStageOptions) {
    this.#options = options
  }

  /** A call that cannot wait is refused if no slot is free. */
  check({ lane, priority }: StageCall): SpillwayError | undefined {
    const { queue, slots, guard } = this.#options
    if (queue.patient || queue.hasPlace(priority, slots.slotsLeft(lane))) return undefined
    return concurrencyError(guard, slots.active, slots.limit)
  }

  started({ startMs }: StageAttempt): void {
    this.#options.slots.beat(startMs)
  }

  /** How long a failure or an abort took says nothing about the load. */
  answered({ laneInUse, startMs }: StageAttempt, answer: Answer): void {
    const { slots, clock } = this.#options
    if (slots.lanes === undefined) return
    const { outcome } = answer.verdict
    const dropped = isOverload(answer)
    if (!dropped && outcome !== 'success' && outcome !== 'slow') return
    slots.lanes.answered(laneInUse, clock.now(), startMs, dropped)
  }

  /** A call that timed out keeps its slot while its work goes on: the socket is still open. */
  release(
    { laneInUse }: StageAttempt,
    _outcome: Outcome,
    unfinished: Promise<unknown> | undefined,
  ): void {
    if (unfinished === undefined || this.#closed) this.#options.slots.end(laneInUse)
    else this.#freeLater(laneInUse, unfinished)
  }

  cancel(lane: string, _permits: Permits): void {
    this.#options.slots.skip(lane)
  }

  /** In shadow mode: the attempt, which holds a slot already, starts in any case. */
  wouldRefuse(): SpillwayError | undefined {
    const { slots, limit = Number.POSITIVE_INFINITY, guard } = this.#options
    return slots.active > limit ? concurrencyError(guard, slots.active - 1, limit) : undefined
  }

  passed(): Details | undefined {
    const { slots, limit } = this.#options
    if (limit === undefined && slots.lanes === undefined) return undefined
    return { active: slots.active, limit: slots.limit }
  }

  close(): void {
    this.#options.slots.lanes?.close()
  }

  /** The guard closes: slots of abandoned work are free from now on. */
  freeAbandoned(): void {
    this.#closed = true
    for (const free of this.#abandoned) free()
  }

  #freeLater(lane: string, unfinished: Promise<unknown>): void {
    const { slots, clock, graceMs } = this.#options
    const free = () => {
      if (!this.#abandoned.delete(free)) return
      timer.cancel()
      slots.end(lane)
      this.onFreedLater()
    }
    const timer = clock.schedule(graceMs, free)
    timer.unref()
    this.#abandoned.add(free)
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
