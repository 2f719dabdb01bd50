/** Headroom of a guard, as far as its pod knows without a round trip. */
import { describe, expect, it } from 'vitest'
import { createGuardPod, createJob, EVERYWHERE, vendorError } from './guard-pod.js'

describe.each(EVERYWHERE)('guard headroom, store: %s', (where) => {
  it('headroom is 1 without limits and 0 once the guard is closed', async () => {
    const { guard, clock } = createGuardPod({}, { where })
    expect(guard.headroom()).toBe(1)
    const closed = guard.close()
    expect(guard.headroom()).toBe(0)
    await clock.advance(10)
    await closed
  })

  it('headroom is the smallest remaining fraction of any limit and of the slots', async () => {
    const limits = [
      { limit: 10, windowMs: 60_000 },
      { unit: 'tokens', limit: 1_000, windowMs: 60_000 },
    ]
    const { guard, quick, run, clock } = createGuardPod(
      { limits, concurrency: { limit: 4 } },
      { where },
    )
    // A heartbeat has delivered the figures.
    await clock.advance(1_500)
    quick({ cost: { tokens: 100 } })
    await clock.advance(1_500)
    expect(guard.headroom()).toBeCloseTo(0.9)
    quick({ cost: { tokens: 600 } })
    await clock.advance(1_500)
    expect(guard.headroom()).toBeCloseTo(0.3)
    const job = createJob()
    for (let i = 0; i < 3; i++) run(job.fn)
    await clock.advance(1_500)
    expect(guard.headroom()).toBeCloseTo(0.25)
    job.finish()
    await clock.advance(10)
    expect(guard.headroom('another lane')).toBe(1)
  })

  it('headroom is 0 while the circuit is open and 0.05 while it is half-open', async () => {
    const breaker = { consecutiveFailures: 1, openMs: 10_000, probes: 1, successes: 1, rampMs: 0 }
    const { guard, run, quick, clock } = createGuardPod({ breaker }, { where })
    run(() => {
      throw vendorError(500)
    })
    await clock.advance(100)
    expect(guard.headroom()).toBe(0)
    await clock.advance(10_000)
    expect(guard.headroom()).toBe(0.05)
    quick()
    await clock.advance(100)
    expect(guard.headroom()).toBe(1)
  })

  it('headroom is 0 while the lane is paused', async () => {
    const { guard, run, clock } = createGuardPod(
      { limits: [{ limit: 10, windowMs: 60_000 }] },
      { where },
    )
    run(() => {
      throw vendorError(429, { 'retry-after': '5' })
    })
    await clock.advance(100)
    expect(guard.headroom()).toBe(0)
    await clock.advance(7_000)
    expect(guard.headroom()).toBeGreaterThan(0.5)
  })
})
