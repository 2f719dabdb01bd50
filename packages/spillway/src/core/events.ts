/**
 * Events of the whole library on the diagnostics channel `spillway`. They cost nothing while there
 * are no subscribers: callers check `listening()` before they build an event.
 */
import { channel } from 'node:diagnostics_channel'
import type { Details, ErrorCode, Stage } from './errors.js'
import { swallow } from './thenable.js'

/** An event of the library; `type` tells the kinds apart. See `onEvent`. */
export type SpillwayEvent =
  | {
      type: 'bulkhead.refused'
      name: string
      code: ErrorCode
      active: number
      waiting: number
      limit: number
    }
  /**
   * Work ran past its grace period after a timeout. Its slot is free again although it still runs.
   */
  | { type: 'bulkhead.overdue'; name: string; graceMs: number }
  | { type: 'limiter.refused'; name: string; cost: number; retryAfterMs: number }
  | { type: 'timeout.fired'; name: string; kind: TimeoutKind; limitMs: number }
  | { type: 'retry.scheduled'; name: string; attempt: number; delayMs: number; error: unknown }
  | { type: 'retry.stopped'; name: string; attempt: number; because: StopReason; error: unknown }
  /** A breaker changed its state, in this pod or another. */
  | {
      type: 'breaker.opened' | 'breaker.half-opened' | 'breaker.closed' | 'breaker.isolated'
      name: string
      lane: string
      from: string
    }
  /** Only this pod saw failures, so only this pod stops calling. */
  | { type: 'breaker.self-isolated'; name: string; lane: string }
  /**
   * An API key of ours is not used for `forMs`, by the whole fleet: `quota-exhausted`, `invalid-key` or `operator`. The
   * reason is undefined if another pod knows it. `name` is the vendor.
   */
  | {
      type: 'key.quarantined'
      name: string
      key: string
      reason: string | undefined
      forMs: number
    }
  /** The key is used again: a probe succeeded, or an operator released it. */
  | { type: 'key.released'; name: string; key: string }
  /**
   * A guard has `maxLanes` lanes and none of them can be dropped. Calls of further lanes share
   * `lane`. Emitted once while that lasts.
   */
  | { type: 'lanes.full'; name: string; lane: string; maxLanes: number }
  /**
   * A guard has none of the timeouts `callMs`, `firstByteMs` and `idleMs`, so a downstream that never answers holds
   * its calls until their callers give up. Emitted once per guard.
   */
  | { type: 'guard.no-timeout'; name: string }
  /** With `shadow`, the breaker would have refused the call. */
  | { type: 'breaker.refused'; name: string; lane: string; state: string; shadow: boolean }
  /** The store is unreachable (`unreachable`) or has lost data (`untrusted`). Outage rules apply. */
  | { type: 'store.degraded'; name: string; status: string; why: string }
  /**
   * The store has not been reachable since it was created. Emitted once per store. `url` has no
   * login.
   */
  | { type: 'store.unreachable'; name: string; url: string; why: string }
  /** The store is reachable and trusted again. */
  | { type: 'store.restored'; name: string; forMs: number }
  /** The body of a streamed response ended: complete, truncated, stalled, abandoned or aborted. */
  | { type: 'stream.ended'; name: string; lane: string; how: string; error: unknown }
  /** A load shedder refused a call. */
  | {
      type: 'shedder.refused'
      name: string
      reason: string
      pressure: number
      tier: string | undefined
      priority: string
    }
  /**
   * The vendor gives less than a configured limit, so a limit with `learn` was lowered for the whole fleet. Emitted by
   * the pod whose call was refused, at most every 10 seconds for each lane and limit.
   */
  | {
      type: 'limit.learned'
      name: string
      lane: string
      /** Id of the limit: its unit, and a number from the second limit of a unit on. */
      limit: string
      configured: number
      effective: number
    }
  /** An adaptive limit changed. */
  | { type: 'limit.changed'; name: string; from: number; to: number }
  /**
   * A stage in shadow mode would have refused a call. Has the code and the numbers of the refusal.
   */
  | {
      type: 'guard.would-have-refused'
      name: string
      lane: string
      stage: Stage
      code: ErrorCode
      retryAfterMs: number | undefined
      details: Details
    }
  /** A hedge: a second attempt began beside the first, won, or was not made. */
  | { type: 'hedge.started' | 'hedge.won'; name: string; delayMs: number }
  | { type: 'hedge.skipped'; name: string; because: 'budget' | 'busy' }
  /** A call failed, and a fallback answered in its place or failed as well. */
  | { type: 'fallback.used'; name: string; step: string; reason: string }
  | { type: 'fallback.failed'; name: string; step: string; error: unknown }
  /** A feature was switched off or on again. */
  | { type: 'feature.off' | 'feature.on'; name: string; because: string }
  /** An operator asked this pod to drain; a gateway then drains itself. `name` is the pod. */
  | { type: 'pod.command'; name: string; command: 'drain'; by: string }
  /** An operator acted on the fleet, or tried to. */
  | {
      type: 'operator.acted'
      /** The guard that was acted on. */
      name: string
      action: string
      by: string
      /** The address it came from, if known. */
      from: string | undefined
      /** Undefined: all lanes. */
      lane: string | undefined
      /** The API key that was quarantined or released. */
      key?: string
      unit: string | undefined
      limit: number | undefined
      forMs: number | undefined
      /** `refused`: the action was invalid. `failed`: the store did not answer. */
      result: 'done' | 'refused' | 'failed'
      /** What was done, or why it was not. */
      message: string
    }
  /** A job was added to a job queue, or refused because the queue was full. */
  | { type: 'job.added'; name: string; id: string; priority: string }
  | { type: 'job-queue.full'; name: string; size: number; maxSize: number }
  /** A job that this pod worked on has ended or will be tried again. */
  | { type: 'job.done' | 'job.cancelled'; name: string; id: string }
  | { type: 'job.dead'; name: string; id: string; error: string }
  | {
      type: 'job.retried' | 'job.released'
      name: string
      id: string
      delayMs: number
      error: string
    }
  /** The lease of a job has expired, so another worker has it. */
  | { type: 'job.lost'; name: string; id: string }
  /** A job queue was paused or resumed for the whole fleet. */
  | { type: 'job-queue.paused' | 'job-queue.resumed'; name: string }
  /** A user's callback threw, and the default was used in its place. */
  | { type: 'callback.failed'; name: string; callback: string; error: unknown }

/** The limit that a call exceeded. */
export type TimeoutKind = 'connect' | 'call' | 'firstByte' | 'idle' | 'deadline'

/** Why a call is not retried. */
export type StopReason =
  /** This was the last attempt. */
  | 'attempts'
  /** Another attempt would fail in the same way. */
  | 'permanent'
  /** Repeating the call could do harm, and it has no idempotency key. */
  | 'not-idempotent'
  /** The downstream asks for a longer wait than the options allow. */
  | 'retry-after'
  /** Another attempt of usual duration would not end before the deadline. */
  | 'deadline'
  /** The circuit of its lane is not closed. */
  | 'breaker'
  /** The slots of this pod are in use, or calls wait for them. */
  | 'pod-full'
  /** Calls of this pod wait too long in the queue. */
  | 'queue-wait'
  /** Because many calls fail, each call may be retried less often. */
  | 'error-rate'
  /** The retry budget is used up. */
  | 'budget'
  /** `mayRetry` of the call returned false. */
  | 'prevented'
  /** A retry in a nested call has already retried, or decided not to. */
  | 'retried-below'
  /** The mechanism is being closed. */
  | 'closed'
  /** The caller aborted between two attempts. */
  | 'aborted'

/** Name of the diagnostics channel on which all events of the library are published. */
export const EVENT_CHANNEL = 'spillway'

const stream = channel(EVENT_CHANNEL)

export function listening(): boolean {
  return stream.hasSubscribers
}

export function emit(event: SpillwayEvent): void {
  stream.publish(event)
}

/**
 * Calls `listener` for every event of this process until the returned function is called. Exceptions of a
 * listener are ignored, so a faulty log line cannot crash the pod.
 *
 * @example
 * const stop = onEvent((event) => log.info(event))
 */
export function onEvent(listener: (event: SpillwayEvent) => unknown): () => void {
  const subscriber = (event: unknown) => {
    try {
      swallow(listener(event as SpillwayEvent))
    } catch {}
  }
  stream.subscribe(subscriber)
  return () => {
    stream.unsubscribe(subscriber)
  }
}

/** Calls a user's function. If it throws, emits `callback.failed` and returns `fallback`. */
export function callSafely<T>(name: string, callback: string, call: () => T, fallback: T): T {
  try {
    return call()
  } catch (error) {
    if (listening()) emit({ type: 'callback.failed', name, callback, error })
    return fallback
  }
}
