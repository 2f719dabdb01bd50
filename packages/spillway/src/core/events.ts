/**
 * Events of the whole library on the diagnostics channel `spillway`. They cost nothing while there
 * are no subscribers: callers check `listening()` before they build an event.
 */
import { channel } from 'node:diagnostics_channel'
import type { Details, ErrorCode, Stage } from './errors.js'
import { swallow } from './thenable.js'

/**
 * An event of the library; `type` tells the kinds apart. See `onEvent`. The page docs/reference/events.md is made of the
 * comments below. `name` is that of the guard or mechanism unless its comment names another.
 */
export type SpillwayEvent =
  /** A bulkhead had no slot for a call. */
  | {
      type: 'bulkhead.refused'
      name: string
      /** `QUEUE_FULL`, `QUEUE_TIMEOUT` or `DEADLINE_EXCEEDED`. */
      code: ErrorCode
      active: number
      waiting: number
      limit: number
    }
  /**
   * Work ran past its grace period after a timeout. Its slot is free again although it still runs.
   */
  | { type: 'bulkhead.overdue'; name: string; graceMs: number }
  /** A rate limiter refused a call, at once or after a wait. */
  | { type: 'limiter.refused'; name: string; cost: number; retryAfterMs: number }
  /** A time limit passed. Not emitted for `unreadMs`: see `stream.ended`. */
  | { type: 'timeout.fired'; name: string; kind: TimeoutKind; limitMs: number }
  /** An attempt failed, and there will be another after `delayMs`. */
  | {
      type: 'retry.scheduled'
      name: string
      /** The attempt that failed; the first is 1. */
      attempt: number
      delayMs: number
      /** Undefined if the attempt ended with a value, such as a `Response` with 503. */
      error: unknown
    }
  /** An attempt failed, and there will be no other. */
  | {
      type: 'retry.stopped'
      name: string
      /** The attempt that failed; the first is 1. */
      attempt: number
      because: StopReason
      /** Undefined if the attempt ended with a value, such as a `Response` with 503. */
      error: unknown
    }
  /** A breaker changed its state, decided by this pod or another. */
  | {
      type: 'breaker.opened' | 'breaker.half-opened' | 'breaker.closed' | 'breaker.isolated'
      name: string
      lane: string
      from: string
    }
  /** Only this pod saw failures, so only this pod stops calling. */
  | { type: 'breaker.self-isolated'; name: string; lane: string }
  /** The whole fleet of gateways does not use an API key for `forMs`. */
  | {
      type: 'key.quarantined'
      /** The vendor. */
      name: string
      key: string
      /** `quota-exhausted`, `invalid-key` or `operator`; undefined if another pod decided. */
      reason: string | undefined
      forMs: number
    }
  /** An API key is used again: a probe succeeded, or an operator released it. */
  | {
      type: 'key.released'
      /** The vendor. */
      name: string
      key: string
    }
  /**
   * A guard has `maxLanes` lanes and none of them can be dropped. Calls of further lanes share one lane. Emitted once
   * while that lasts.
   */
  | {
      type: 'lanes.full'
      name: string
      /** The shared lane: `(other)`, or that of the matching entry of `lanes`. */
      lane: string
      maxLanes: number
    }
  /**
   * A guard has none of the timeouts `callMs`, `firstByteMs` and `idleMs`, so a downstream that never answers holds
   * its calls until their callers give up. Emitted once per guard.
   */
  | { type: 'guard.no-timeout'; name: string }
  /** A breaker refused a call. */
  | {
      type: 'breaker.refused'
      name: string
      lane: string
      state: string
      /** True: with the option `shadow`, it would have refused the call. */
      shadow: boolean
    }
  /** The store does not answer or has lost data. Outage rules apply. */
  | {
      type: 'store.degraded'
      name: string
      /** `unreachable`, or `untrusted` after a loss of data. */
      status: string
      why: string
    }
  /** The store has not been reachable since it was created. Emitted once per store. */
  | {
      type: 'store.unreachable'
      /** `redis`. */
      name: string
      /** Without its login. */
      url: string
      why: string
    }
  /** The store is reachable and trusted again. */
  | { type: 'store.restored'; name: string; forMs: number }
  /** The body of a streamed response ended. */
  | {
      type: 'stream.ended'
      name: string
      lane: string
      /** `complete`, `truncated`, `stalled`, `abandoned` or `aborted`. */
      how: string
      /** The error that its reader received, if any. */
      error: unknown
    }
  /** A load shedder that is used alone refused a call. */
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
      /** The limit now in force. */
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
  /** A second attempt began beside a slow one, or finished first. */
  | { type: 'hedge.started' | 'hedge.won'; name: string; delayMs: number }
  /** No second attempt was made, although the first was slow. */
  | { type: 'hedge.skipped'; name: string; because: 'budget' | 'busy' }
  /** A call failed, and a fallback answered in its place. */
  | { type: 'fallback.used'; name: string; step: string; reason: string }
  /** A call failed, and a fallback failed as well. */
  | { type: 'fallback.failed'; name: string; step: string; error: unknown }
  /** A feature was switched off or on again. */
  | { type: 'feature.off' | 'feature.on'; name: string; because: string }
  /** An operator asked this pod to drain. A gateway then drains itself; in another process your code has to. */
  | {
      type: 'pod.command'
      /** The pod. */
      name: string
      command: 'drain'
      by: string
    }
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
  /** This pod added a job to a job queue. */
  | { type: 'job.added'; name: string; id: string; priority: string }
  /** A job of this pod was refused, because the job queue was full. */
  | { type: 'job-queue.full'; name: string; size: number; maxSize: number }
  /** A job that this pod worked on has ended, or was cancelled. */
  | { type: 'job.done' | 'job.cancelled'; name: string; id: string }
  /** A job that this pod worked on is now a dead letter. */
  | { type: 'job.dead'; name: string; id: string; error: string }
  /** A job will be handed out again, because it failed (`job.retried`) or was not attempted (`job.released`). */
  | {
      type: 'job.retried' | 'job.released'
      name: string
      id: string
      delayMs: number
      error: string
    }
  /** The lease of a job expired before this pod had finished it, so another worker has it. */
  | { type: 'job.lost'; name: string; id: string }
  /** This pod paused or resumed a job queue for the whole fleet. */
  | { type: 'job-queue.paused' | 'job-queue.resumed'; name: string }
  /** A function of the application threw or returned an invalid value, and the default was used. */
  | {
      type: 'callback.failed'
      name: string
      /** The option that has the function, such as `classify`. */
      callback: string
      error: unknown
    }

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
