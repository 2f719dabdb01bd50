/** Load shedding: refuses early, before anything is done. Critical calls are never shed. */
import { type Details, SpillwayError } from '../../core/errors.js'
import { callSafely } from '../../core/events.js'
import { PRIORITIES, type Priority } from '../../core/options/priority.js'
import type { Clock } from '../../core/time/clock.js'
import type { Shedder, ShedderSnapshot } from '../../local/load-shedder/shedder.js'
import type { Stage, StageCall } from '../pipeline/stage.js'
import type { ConcurrencyStage } from './concurrency.js'
import type { QueueStage } from './queue.js'
import { shedByHookError } from './refusal-errors.js'

/** Argument of `shed.when`. */
export interface ShedQuestion {
  /** Priority of the call. */
  priority: Priority
  /** Its user, if known. */
  user: string | undefined
  /** Tier of its user, if known. */
  tier: string | undefined
  /** Calls in the queue. */
  waiting: number
}

export class ShedStage implements Stage {
  readonly name = 'shed'
  readonly scope = 'local'
  readonly per = 'call'
  readonly shedder: Shedder
  readonly #guard: string
  readonly #clock: Clock
  readonly #queue: QueueStage
  readonly #slots: ConcurrencyStage
  readonly #when: ((question: ShedQuestion) => boolean) | undefined

  constructor(
    guard: string,
    clock: Clock,
    shedder: Shedder,
    when: ((question: ShedQuestion) => boolean) | undefined,
    queue: QueueStage,
    slots: ConcurrencyStage,
  ) {
    this.#guard = guard
    this.#clock = clock
    this.shedder = shedder
    this.#when = when
    this.#queue = queue
    this.#slots = slots
  }

  check({ options, priority, deadlineMs }: StageCall, nowMs: number): SpillwayError | undefined {
    const shedder = this.shedder
    shedder.arrive()
    const queue = this.#queue
    // Most calls find an empty queue.
    const waiting = queue.calls.length === 0 ? 0 : queue.waiting(nowMs)
    const { active } = this.#slots
    const reason = shedder.decide(priority, options, deadlineMs, nowMs, waiting, active)
    if (reason !== undefined) {
      const { tier } = options
      const call = { importance: priority, tier, deadlineMs, waiting, inFlight: active }
      return shedder.refusal(reason, call, nowMs, 'shed.')
    }
    if (this.#when === undefined || priority === 0) return undefined
    const { user, tier } = options
    const question = { priority: PRIORITIES[priority] as Priority, user, tier, waiting }
    if (!this.#shouldShed(this.#when, question)) return undefined
    return shedByHookError(this.#guard, waiting, shedder.wait.nextMs(nowMs))
  }

  /** Calls the application's function. If it throws, the call is not shed. */
  #shouldShed(when: (question: ShedQuestion) => boolean, question: ShedQuestion): boolean {
    return callSafely(this.#guard, 'shed.when', () => when(question) === true, false)
  }

  /** How long the caller waited for its answer or a timeout. Other failures may be fast, so they do not count. */
  callEnded(arrivedMs: number, error: unknown): void {
    if (error !== undefined && !isTimeout(error)) return
    const nowMs = this.#clock.now()
    this.shedder.record(nowMs, nowMs - arrivedMs)
  }

  passed(_call: StageCall, _permits: unknown, nowMs: number): Details {
    const { pressure, highest } = this.pressureAt(nowMs)
    return { pressure, ...(highest !== undefined && { by: highest }) }
  }

  pressureAt(nowMs: number): ShedderSnapshot {
    return this.shedder.snapshot(this.#queue.waiting(nowMs), this.#slots.active)
  }

  close(): void {
    this.shedder.close()
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof SpillwayError && error.stage === 'timeout'
}
