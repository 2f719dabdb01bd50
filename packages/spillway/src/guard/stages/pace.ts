/** Pace: at most `limit` starts in `windowMs` from this pod, to smooth bursts. */
import type { Details, SpillwayError } from '../../core/errors.js'
import type { Algorithm } from '../../local/rate-limiter/algorithm.js'
import type { Stage, StageAttempt, StageCall } from '../pipeline/stage.js'
import type { Slots } from '../queue/slots.js'
import { paceError } from './refusal-errors.js'

/** Whether calls of a guard can wait, and for how long. */
export interface QueueRoom {
  /** The guard has a queue. */
  readonly patient: boolean
  /** Whether a call may join: there is a place, a less important call to evict, or `free` start at once. */
  hasPlace(priority: number, free: number): boolean
}

export class PaceStage implements Stage {
  readonly name = 'pace'
  readonly scope = 'local'
  readonly per = 'attempt'
  readonly #guard: string
  readonly #bucket: Algorithm
  readonly #options: { limit: number; windowMs: number; burst: number | undefined }
  readonly #slots: Slots
  readonly #queue: QueueRoom

  constructor(
    guard: string,
    options: { limit: number; windowMs: number; burst: number | undefined },
    bucket: Algorithm,
    slots: Slots,
    queue: QueueRoom,
  ) {
    this.#guard = guard
    this.#options = options
    this.#bucket = bucket
    this.#slots = slots
    this.#queue = queue
  }

  /** A call that cannot wait is refused if no start is left in this window. */
  check({ priority }: StageCall, nowMs: number): SpillwayError | undefined {
    if (this.#queue.patient) return undefined
    if (this.#queue.hasPlace(priority, this.#slots.startsLeft(nowMs))) return undefined
    return paceError(this.#guard, this.#slots.active, this.#slots.startWaitMs(nowMs))
  }

  /** In shadow mode: the attempt starts in any case. */
  wouldRefuse({ startMs }: StageAttempt): SpillwayError | undefined {
    if (this.#bucket.tryTake(startMs, 1)) return undefined
    return paceError(this.#guard, this.#slots.active - 1, this.#bucket.waitMs(startMs, 1, 0))
  }

  passed(): Details {
    const { limit, windowMs, burst } = this.#options
    return { limit, windowMs, ...(burst !== undefined && { burst }) }
  }
}
