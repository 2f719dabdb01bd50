/**
 * What happens inside, as one typed stream on the diagnostics channel `spillway`. Publishing costs
 * nothing while nobody listens: callers ask `listening()` before they build an event.
 */
import { channel } from 'node:diagnostics_channel'
import type { Details, ErrorCode, Stage } from './errors.js'
import { swallow } from './thenable.js'

export type SpillwayEvent =
  | {
      type: 'bulkhead.refused'
      name: string
      code: ErrorCode
      active: number
      waiting: number
      limit: number
    }
  /** Work went on past its grace after a timeout: its slot is given away although it still runs. */
  | { type: 'bulkhead.overdue'; name: string; graceMs: number }
  | { type: 'limiter.refused'; name: string; cost: number; retryAfterMs: number }
  | { type: 'timeout.fired'; name: string; kind: TimeoutKind; limitMs: number }
  | { type: 'retry.scheduled'; name: string; attempt: number; delayMs: number; error: unknown }
  | { type: 'retry.stopped'; name: string; attempt: number; because: StopReason; error: unknown }
  /** A breaker changed, on this pod or on another. */
  | {
      type: 'breaker.opened' | 'breaker.half-opened' | 'breaker.closed' | 'breaker.isolated'
      name: string
      lane: string
      from: string
    }
  /** This pod alone saw failures, so it alone stops calling. */
  | { type: 'breaker.self-isolated'; name: string; lane: string }
  /**
   * A guard has `maxLanes` lanes and none of them can be dropped, so calls of further lanes share `lane`. Emitted
   * once for as long as that lasts.
   */
  | { type: 'lanes.full'; name: string; lane: string; maxLanes: number }
  /** In shadow mode it would have been. */
  | { type: 'breaker.refused'; name: string; lane: string; state: string; shadow: boolean }
  /** The store does not answer (`away`), or has lost what it knew (`apart`): outage rules are in force. */
  | { type: 'store.degraded'; name: string; status: string; why: string }
  /** The store has not been reachable since it was created. Once for each store. `url`: without its login. */
  | { type: 'store.unreachable'; name: string; url: string; why: string }
  /** All is shared again. */
  | { type: 'store.restored'; name: string; forMs: number }
  /** A streamed answer ended: complete, truncated, stalled, abandoned or aborted. */
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
  /** An adaptive limit has found another number. */
  | { type: 'limit.changed'; name: string; from: number; to: number }
  /** A stage in shadow would have: with its code and the numbers behind it. */
  | {
      type: 'guard.would-have-refused'
      name: string
      lane: string
      stage: Stage
      code: ErrorCode
      retryAfterMs: number | undefined
      details: Details
    }
  /** A second attempt was begun beside the first, or not. */
  | { type: 'hedge.begun' | 'hedge.won'; name: string; delayMs: number }
  | { type: 'hedge.skipped'; name: string; because: 'budget' | 'busy' }
  /** A call went wrong, and somebody else answered in its place; or had no answer either. */
  | { type: 'fallback.used'; name: string; step: string; reason: string }
  | { type: 'fallback.failed'; name: string; step: string; error: unknown }
  /** A feature was switched off, or on again. */
  | { type: 'feature.off' | 'feature.on'; name: string; because: string }
  /** Somebody wants something of this pod; a gateway drains itself. `name`: the pod. */
  | { type: 'pod.asked'; name: string; what: 'drain'; by: string }
  /** Somebody has done something to the fleet by hand, or has tried to. */
  | {
      type: 'operator.acted'
      /** The guard it was about. */
      name: string
      action: string
      by: string
      /** Where that came from, if anybody said. */
      from: string | undefined
      /** None: all lanes. */
      lane: string | undefined
      unit: string | undefined
      limit: number | undefined
      forMs: number | undefined
      /** `refused`: it made no sense; `failed`: the store did not answer. */
      result: 'done' | 'refused' | 'failed'
      /** In words: what was done, or why not. */
      message: string
    }
  /** A job queue has a job more, or has no room for it. */
  | { type: 'job.added'; name: string; id: string; priority: string }
  | { type: 'queue.full'; name: string; size: number; maxSize: number }
  /** What became of a job that this pod had: its end, or another turn. */
  | { type: 'job.done' | 'job.cancelled'; name: string; id: string }
  | { type: 'job.dead'; name: string; id: string; error: string }
  | {
      type: 'job.retried' | 'job.released'
      name: string
      id: string
      delayMs: number
      error: string
    }
  /** Its lease has ended: somebody else has it. */
  | { type: 'job.lost'; name: string; id: string }
  /** Nothing is handed out, or something is again, for the whole fleet. */
  | { type: 'queue.paused' | 'queue.resumed'; name: string }
  /** A function handed to Spillway threw; the default was used in its place. */
  | { type: 'callback.failed'; name: string; callback: string; error: unknown }

/** Which of its limits a call ran into. */
export type TimeoutKind = 'connect' | 'call' | 'firstByte' | 'idle' | 'deadline'

/** Why a call is not tried again. */
export type StopReason =
  /** This was the last attempt. */
  | 'attempts'
  /** It would end the same way again. */
  | 'permanent'
  /** Doing it twice might do harm, and it carries no idempotency key. */
  | 'not-idempotent'
  /** The downstream asks for a longer wait than we are prepared for. */
  | 'retry-after'
  /** Another attempt at the usual latency would not be done by the deadline. */
  | 'deadline'
  /** Too many retries already, or this pod is in no condition to make any. */
  | 'budget'
  /** A retry further in has already tried again, or decided not to. */
  | 'retried-below'
  /** What it goes through is being closed. */
  | 'closed'
  /** The caller left while it waited for the next attempt. */
  | 'aborted'

export const EVENT_CHANNEL = 'spillway'

const stream = channel(EVENT_CHANNEL)

export function listening(): boolean {
  return stream.hasSubscribers
}

export function emit(event: SpillwayEvent): void {
  stream.publish(event)
}

/**
 * Hears every event of this process; returns what stops it. A listener that throws is ignored: a
 * faulty log line must not take the pod down.
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

/** Calls a user's function; if it throws, says so on the stream and answers with the fallback. */
export function callSafely<T>(name: string, callback: string, call: () => T, fallback: T): T {
  try {
    return call()
  } catch (error) {
    if (listening()) emit({ type: 'callback.failed', name, callback, error })
    return fallback
  }
}
