/**
 * Figures of this pod over the last seconds: error rate, queue wait, calls per second, latency
 * percentiles. Local decisions use them (retry budget, load shedding, adaptive timeouts). They do
 * not replace monitoring. Recording is O(1) and allocates nothing.
 */

import { RollingCounter } from '../../core/collections/rolling-counter.js'
import {
  type Duration,
  duration,
  OptionsError,
  object,
  optional,
  validate,
} from '../../core/options/checks.js'
import { type CallEnd, judge, type Outcome, type OutcomeOptions } from '../../core/outcome.js'
import type { Clock } from '../../core/time/clock.js'
import { clockOption } from '../../core/time/clock-options.js'
import { RollingHistogram } from '../rolling-histogram.js'

/** Options of `createPodMetrics()`. */
export interface PodMetricsOptions {
  /** Rates and percentiles are those of this time. Range: from 100 ms. Default: 10 seconds. */
  windowMs?: Duration
  /** The clock to read and to set timers with. Default: the system clock. */
  clock?: Clock
}

/** Measurements of this pod at one moment. */
export interface PodMetricsSnapshot {
  /** Calls recorded in the window, whatever their outcome. */
  calls: number
  /** Failures ÷ (successes + slow ones + failures), 0 to 1; 0 without calls. */
  errorRate: number
  /** Average queue wait in milliseconds. */
  queueWaitMs: number
  /** Calls per second. */
  rps: number
  /** Median duration in milliseconds. */
  p50Ms: number
  /** 95th percentile of the durations in milliseconds. */
  p95Ms: number
  /** 99th percentile of the durations in milliseconds. */
  p99Ms: number
}

/** Options of one measurement. */
export interface MeasureOptions extends Pick<OutcomeOptions, 'classify' | 'slowMs'> {
  /** The caller's signal. An abort by the caller is no failure of the downstream. Default: none. */
  signal?: AbortSignal
}

/** Measurements of this pod: CPU, memory, event loop and calls. Created by `createPodMetrics()`. */
export interface PodMetrics {
  /** Runs a call and records its duration and outcome. Returns or throws what the call does. */
  measure<T>(fn: () => T | PromiseLike<T>, options?: MeasureOptions): Promise<T>
  /** Records a call that was measured elsewhere. */
  record(durationMs: number, outcome: Outcome): void
  /** Records how long a call waited, in milliseconds. */
  recordQueueWait(waitMs: number): void
  /** Share of recent calls that failed, 0 to 1. */
  errorRate(): number
  /** Average wait of recent calls, in milliseconds. */
  queueWaitMs(): number
  /** Milliseconds that this fraction (0 to 1) of the calls did not exceed. */
  percentile(fraction: number): number
  /** All measurements at this moment. */
  snapshot(): PodMetricsSnapshot
}

const SLICES = 20

const readOptions = object({
  windowMs: optional(duration({ min: 100 }), 10_000),
  clock: clockOption,
})

/**
 * Creates rolling measurements of this pod: error rate, queue wait and percentiles.
 *
 * @example
 * const metrics = createPodMetrics({ windowMs: '10s' })
 * await metrics.measure(() => loadUser(id))
 * metrics.snapshot().p99Ms
 */
export function createPodMetrics(options: PodMetricsOptions = {}): PodMetrics {
  const { windowMs, clock } = validate('podMetrics', options, readOptions)
  const counter = () => new RollingCounter(windowMs, SLICES)
  const calls = counter()
  const judged = counter()
  const failures = counter()
  const waits = counter()
  const waitedMs = counter()
  const latencies = new RollingHistogram(windowMs)
  const startedMs = clock.now()

  const errorRate = () => ratio(failures.total(clock.now()), judged.total(clock.now()))
  const queueWaitMs = () => ratio(waitedMs.total(clock.now()), waits.total(clock.now()))
  const percentile = (fraction: number) => {
    if (!(fraction >= 0 && fraction <= 1)) complain('fraction', 'from 0 to 1', fraction)
    return latencies.percentile(clock.now(), fraction)
  }

  function record(durationMs: number, outcome: Outcome): void {
    if (!(durationMs >= 0 && durationMs < Infinity))
      complain('durationMs', 'of at least 0', durationMs)
    const now = clock.now()
    calls.add(now, 1)
    // Refused calls have no latency. Their short times would look good under overload.
    if (outcome !== 'ignored') latencies.record(now, durationMs)
    if (outcome === 'ignored' || outcome === 'throttled') return
    judged.add(now, 1)
    if (outcome === 'failure') failures.add(now, 1)
  }

  async function measure<T>(
    fn: () => T | PromiseLike<T>,
    options: MeasureOptions = {},
  ): Promise<T> {
    const startMs = clock.now()
    const note = (end: CallEnd) => {
      const durationMs = clock.now() - startMs
      record(durationMs, judge({ ...end, durationMs, signal: options.signal }, options).outcome)
    }
    try {
      const value = await fn()
      note({ value })
      return value
    } catch (error) {
      note({ error })
      throw error
    }
  }

  return {
    measure,
    record,
    recordQueueWait(waitMs) {
      if (!(waitMs >= 0 && waitMs < Infinity)) complain('waitMs', 'of at least 0', waitMs)
      const now = clock.now()
      waits.add(now, 1)
      waitedMs.add(now, waitMs)
    },
    errorRate,
    queueWaitMs,
    percentile,
    snapshot() {
      const now = clock.now()
      // A pod that has just started has not seen a whole window yet.
      const seenMs = Math.min(calls.coveredMs(now), Math.max(1_000, now - startedMs))
      return {
        calls: calls.total(now),
        errorRate: errorRate(),
        queueWaitMs: queueWaitMs(),
        rps: (calls.total(now) * 1_000) / seenMs,
        p50Ms: percentile(0.5),
        p95Ms: percentile(0.95),
        p99Ms: percentile(0.99),
      }
    },
  }
}

/** A value of NaN would stay in the sums for a whole window. */
function complain(what: string, range: string, value: number): never {
  const message = `must be a number ${range}, got ${value}`
  throw new OptionsError([{ path: `podMetrics.${what}`, message }])
}

function ratio(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole
}
