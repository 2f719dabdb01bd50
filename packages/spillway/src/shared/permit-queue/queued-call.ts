/** A call that waits in the queue, and the call's state while it is there. */
import { AsyncResource } from 'node:async_hooks'
import type { CallerSignal } from '../../core/abort.js'

/** Why the queue dropped a call. */
export type LeaveReason =
  /** The queue timeout passed. */
  | 'timeout'
  /** The caller's deadline passed. */
  | 'deadline'
  /** The queue was full, and a call of higher priority arrived. */
  | 'displaced'
  /** The queue is standing, and CoDel dropped the call. */
  | 'overload'

const RESOURCE_OPTIONS = { requireManualDestroy: true }

/**
 * Ten thousand calls may wait, and the garbage collector copies whatever waits. So the call object itself is
 * the queue entry, it is also the AsyncResource that remembers its caller's async context (hence `extends`),
 * and it has no pointers to other entries. `H` is what the pod holds for the call during a round trip.
 */
export abstract class QueuedCall<H = unknown> extends AsyncResource {
  abstract readonly lane: string
  /** 0 is the highest. */
  abstract readonly priority: number
  /** When the call arrived. A retry keeps its call's arrival, and with it its position. */
  abstract readonly arrivedMs: number
  abstract readonly deadlineMs: number
  abstract readonly signal: CallerSignal | undefined
  /** Position in the order of joins; breaks ties between calls of the same millisecond. */
  order = 0
  /** `requesting`: on a round trip for its permits. `gone`: not in the queue, before or after. */
  state: 'waiting' | 'requesting' | 'gone' = 'gone'
  /** When it joined the queue, if that is not when the call arrived. */
  #joinedMs: number | undefined
  /** Cancels its deadline timer and its abort listener, if it has any. */
  stopListening: (() => void) | undefined
  /** Held for it while the store is asked for the rest. */
  held: H | undefined

  constructor() {
    super('SpillwayCall', RESOURCE_OPTIONS)
  }

  /** False: the call accepts a reply of the store, but does not wait for a permit to become free. */
  get mayWait(): boolean {
    return true
  }

  /** The queue dropped the call. */
  abstract onLeave(why: LeaveReason): void
  /** The caller aborted, and the call has left the queue. */
  abstract onAborted(reason: unknown): void

  /** Asked when its deadline has passed. False: the call stays. */
  mayExpire(): boolean {
    return true
  }

  /** Marks the call as waiting. A call joins once: its place in a deque may outlive its stay. */
  join(order: number, nowMs: number): void {
    this.order = order
    this.state = 'waiting'
    // V8 boxes a fractional number in a field, so it is stored only where it differs.
    if (nowMs !== this.arrivedMs) this.#joinedMs = nowMs
  }

  get joinedMs(): number {
    return this.#joinedMs ?? this.arrivedMs
  }
}

/** The order within one priority: by arrival, then by join. */
export function isBefore(one: QueuedCall, other: QueuedCall): boolean {
  if (one.arrivedMs !== other.arrivedMs) return one.arrivedMs < other.arrivedMs
  return one.order < other.order
}
