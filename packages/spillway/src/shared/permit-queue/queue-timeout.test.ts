import { describe, expect, it } from 'vitest'
import { fc } from '../../../test/fast-check.js'
import { TestCall } from '../../../test/queued-test-call.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { CallQueue } from './call-queue.js'
import type { LeaveReason } from './queued-call.js'

describe('queue timeout', () => {
  it('every queued call times out on time, at any fraction of a millisecond', async () => {
    // Small compared with the timeout, so their floating-point sum is not exact.
    const times = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 12 })
    const timeouts = fc.double({ min: 1, max: 10_000, noNaN: true })
    await fc.assert(
      fc.asyncProperty(times, timeouts, async (gaps, timeoutMs) => {
        const clock = createVirtualClock()
        const queue = new CallQueue({ clock, size: 100, timeoutMs, targetMs: 1e9, agingMs: 1e9 })
        const lateBy: number[] = []
        for (const gapMs of gaps) {
          await clock.advance(gapMs)
          const arrivedMs = clock.now()
          const onLeave = (why: LeaveReason) => {
            expect(why).toBe('timeout')
            lateBy.push(clock.now() - arrivedMs - timeoutMs)
          }
          queue.join(new TestCall({ arrivedMs, onLeave }), arrivedMs, 0)
        }
        await clock.drain()
        expect(queue.length).toBe(0)
        expect(lateBy).toHaveLength(gaps.length)
        // The virtual clock is exact; calls that arrived together leave together.
        for (const ms of lateBy) expect(Math.abs(ms)).toBeLessThan(1e-6)
      }),
      { numRuns: 300 },
    )
  })

  it('the queue uses one timer for any number of calls', async () => {
    const clock = createVirtualClock()
    const queue = new CallQueue({
      clock,
      size: 1_000,
      timeoutMs: 5_000,
      targetMs: 1e9,
      agingMs: 1e9,
    })
    const left: number[] = []
    for (let i = 0; i < 100; i++) {
      const onLeave = () => left.push(clock.now())
      queue.join(new TestCall({ arrivedMs: clock.now(), onLeave }), clock.now(), 0)
      await clock.advance(10)
    }
    expect(clock.pending).toBe(1)
    await clock.advance(4_500)
    // Calls that arrived in the first 500 ms.
    expect(left).toHaveLength(51)
    expect(clock.pending).toBe(1)
    await clock.advance(500)
    expect(left).toHaveLength(100)
    expect(clock.pending).toBe(0)
  })
})
