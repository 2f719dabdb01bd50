import { describe, expect, it } from 'vitest'
import { sleep } from '../../core/time/sleep.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { RollingHistogram } from '../rolling-histogram.js'
import { createPodMetrics } from './pod-metrics.js'

describe('rolling histogram', () => {
  it('rolling histogram gives percentiles within about one per cent for a million values', () => {
    const histogram = new RollingHistogram(10_000)
    for (let i = 1; i <= 1_000_000; i++) histogram.record(0, i / 1_000)
    expect(histogram.count(0)).toBe(1_000_000)
    for (const fraction of [0.5, 0.95, 0.99]) {
      const exact = 1_000 * fraction
      expect(Math.abs(histogram.percentile(0, fraction) - exact) / exact).toBeLessThan(0.011)
    }
  })

  it('rolling histogram drops values older than its window, slice by slice', () => {
    const histogram = new RollingHistogram(6_000)
    histogram.record(500, 1_000)
    histogram.record(3_500, 10)
    expect(histogram.count(5_999)).toBe(2)
    expect(histogram.count(6_000)).toBe(1)
    expect(histogram.percentile(6_000, 1)).toBeCloseTo(10, 0)
    expect(histogram.count(9_000)).toBe(0)
    expect(histogram.percentile(9_000, 0.99)).toBe(0)
  })

  it('rolling histogram works at time zero', () => {
    const histogram = new RollingHistogram(60_000)
    expect(histogram.count(0)).toBe(0)
    histogram.record(0, 5)
    expect(histogram.count(1)).toBe(1)
  })

  it('rolling histogram accepts zero, negative, tiny and huge durations', () => {
    const histogram = new RollingHistogram(1_000)
    for (const ms of [0, -5, 0.0001, 1e9]) histogram.record(0, ms)
    expect(histogram.count(0)).toBe(4)
  })
})

describe('pod metrics', () => {
  it('pod metrics report error rate, queue wait, rps and percentiles of the recent window', async () => {
    const clock = createVirtualClock()
    const metrics = createPodMetrics({ windowMs: '10s', clock })
    for (let i = 1; i <= 100; i++) {
      metrics.record(i, i <= 25 ? 'failure' : 'success')
      metrics.recordQueueWait(i <= 50 ? 10 : 30)
      await clock.advance(50)
    }
    const snapshot = metrics.snapshot()
    expect(snapshot).toMatchObject({ calls: 100, errorRate: 0.25, queueWaitMs: 20, rps: 20 })
    expect(snapshot.p50Ms).toBeCloseTo(50, -0.5)
    expect(snapshot.p95Ms).toBeCloseTo(95, -0.5)
    expect(snapshot.p99Ms).toBeCloseTo(99, -0.5)
    await clock.advance(11_000)
    expect(metrics.snapshot()).toEqual({
      calls: 0,
      errorRate: 0,
      queueWaitMs: 0,
      rps: 0,
      p50Ms: 0,
      p95Ms: 0,
      p99Ms: 0,
    })
  })

  it('ignored and throttled calls do not count in the error rate', () => {
    const metrics = createPodMetrics({ clock: createVirtualClock() })
    metrics.record(10, 'failure')
    metrics.record(10, 'slow')
    metrics.record(10, 'ignored')
    metrics.record(10, 'throttled')
    expect(metrics.errorRate()).toBe(0.5)
    expect(metrics.snapshot().calls).toBe(4)
  })

  it('measure() records a call and passes on its value or error', async () => {
    const clock = createVirtualClock()
    const metrics = createPodMetrics({ clock })
    const boom = new Error('boom')
    const ok = metrics.measure(() => sleep(clock, 40).then(() => 'ok'))
    await expect(clock.until(ok)).resolves.toBe('ok')
    await expect(metrics.measure(() => Promise.reject(boom))).rejects.toBe(boom)
    const throwing = () => {
      throw boom
    }
    await expect(metrics.measure(throwing)).rejects.toBe(boom)
    await expect(metrics.measure(() => Promise.reject({ status: 404 }))).rejects.toBeDefined()
    expect(metrics.snapshot()).toMatchObject({ calls: 4, errorRate: 2 / 3 })
    expect(metrics.percentile(1)).toBeCloseTo(40, 0)
    expect(metrics.percentile(0)).toBeLessThan(1)
  })

  it('pod metrics reject values that are not numbers', () => {
    const metrics = createPodMetrics()
    expect(() => metrics.record(Number.NaN, 'success')).toThrow('podMetrics.durationMs: must be')
    expect(() => metrics.recordQueueWait(-1)).toThrow('podMetrics.waitMs: must be')
    expect(() => metrics.percentile(99)).toThrow('podMetrics.fraction: must be')
    expect(metrics.snapshot().calls).toBe(0)
  })

  it('createPodMetrics names the invalid option', () => {
    expect(() => createPodMetrics({ windowMs: 5 })).toThrow('podMetrics.windowMs')
  })
})
