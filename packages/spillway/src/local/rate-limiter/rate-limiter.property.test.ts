import { describe, expect, it } from 'vitest'
import { fc } from '../../../test/fast-check.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { createRateLimiter, type RateLimiterOptions } from './rate-limiter.js'

interface Grant {
  atMs: number
  cost: number
}

const step = fc.record({
  pauseMs: fc.oneof(
    fc.constant(0),
    fc.nat(30),
    fc.nat(400),
    fc.double({ min: 0, max: 5, noNaN: true }),
  ),
  cost: fc.integer({ min: 1, max: 5 }),
  /** Requests at once, or waits up to `waitMs` and may abort earlier. */
  waitMs: fc.option(fc.nat(500), { nil: undefined }),
  abortAfterMs: fc.option(fc.nat(300), { nil: undefined }),
})
const steps = fc.array(step, { maxLength: 60 })
const limits = fc.record({
  limit: fc.integer({ min: 5, max: 20 }),
  windowMs: fc.integer({ min: 1, max: 1_000 }),
})

/** Returns all grants in order. */
async function play(
  options: RateLimiterOptions,
  plan: (typeof step extends fc.Arbitrary<infer T> ? T : never)[],
): Promise<Grant[]> {
  const clock = createVirtualClock({ wallMs: 0 })
  const limiter = createRateLimiter({ ...options, clock })
  const grants: Grant[] = []
  const pending: Promise<unknown>[] = []
  for (const { pauseMs, cost, waitMs, abortAfterMs } of plan) {
    if (pauseMs > 0) await clock.advance(pauseMs)
    const grant = (granted: boolean) => granted && grants.push({ atMs: clock.now(), cost })
    if (waitMs === undefined) {
      grant(limiter.tryAcquire(cost))
    } else {
      const abort = new AbortController()
      if (abortAfterMs !== undefined) clock.schedule(abortAfterMs, () => abort.abort())
      const acquired = limiter.acquireWithin(waitMs, { cost, signal: abort.signal })
      pending.push(acquired.then(grant, () => {}))
    }
  }
  await clock.until(Promise.all(pending))
  await clock.drain()
  expect(limiter.waiting).toBe(0)
  return grants
}

function granted(grants: Grant[], fromMs: number, toMs: number): number {
  return grants
    .filter(({ atMs }) => atMs >= fromMs && atMs <= toMs)
    .reduce((sum, { cost }) => sum + cost, 0)
}

const CLOSE = 1e-6
/** The shortest wait in rate-limiter.ts. */
const SHORTEST_WAIT_MS = 0.001

describe('rate limiter under random requests, waits and aborts', () => {
  it('sliding window grants at most its limit in any window of time', async () => {
    await fc.assert(
      fc.asyncProperty(
        limits,
        steps,
        fc.integer({ min: 1, max: 50 }),
        async (base, plan, slices) => {
          const grants = await play({ ...base, algorithm: 'sliding-window', slices }, plan)
          for (const { atMs } of grants) {
            expect(granted(grants, atMs, atMs + base.windowMs)).toBeLessThanOrEqual(base.limit)
          }
        },
      ),
      { numRuns: 200 },
    )
  })

  it('token bucket grants at most its burst plus the tokens refilled meanwhile', async () => {
    await fc.assert(
      fc.asyncProperty(
        limits,
        steps,
        fc.integer({ min: 5, max: 30 }),
        async (base, plan, burst) => {
          const grants = await play({ ...base, algorithm: 'token-bucket', burst }, plan)
          for (const [index, first] of grants.entries()) {
            for (const last of grants.slice(index)) {
              const flowed = ((last.atMs - first.atMs) * base.limit) / base.windowMs
              expect(granted(grants, first.atMs, last.atMs)).toBeLessThanOrEqual(
                burst + flowed + CLOSE,
              )
            }
          }
        },
      ),
      { numRuns: 200 },
    )
  })

  it('leaky bucket spaces grants by the cost of the previous grant', async () => {
    await fc.assert(
      fc.asyncProperty(limits, steps, async (base, plan) => {
        const grants = await play({ ...base, algorithm: 'leaky-bucket' }, plan)
        const beatMs = base.windowMs / base.limit
        for (const [index, { atMs, cost }] of grants.entries()) {
          const next = grants[index + 1]
          // A waiting call may wake up a microsecond after its time slot has begun.
          const distanceMs = cost * beatMs - SHORTEST_WAIT_MS - CLOSE
          if (next) expect(next.atMs - atMs).toBeGreaterThanOrEqual(distanceMs)
        }
      }),
      { numRuns: 200 },
    )
  })

  it('fixed window grants at most its limit in each calendar window', async () => {
    await fc.assert(
      fc.asyncProperty(limits, steps, async (base, plan) => {
        const grants = await play({ ...base, algorithm: 'fixed-window' }, plan)
        const perWindow = new Map<number, number>()
        for (const { atMs, cost } of grants) {
          const window = Math.floor(atMs / base.windowMs)
          perWindow.set(window, (perWindow.get(window) ?? 0) + cost)
        }
        for (const used of perWindow.values()) expect(used).toBeLessThanOrEqual(base.limit)
      }),
      { numRuns: 200 },
    )
  })

  it('sliding window uses nearly all of its limit under constant demand', async () => {
    const clock = createVirtualClock()
    const options = { algorithm: 'sliding-window', limit: 60, windowMs: 6_000, clock } as const
    const limiter = createRateLimiter(options)
    let used = 0
    const demand = async () => {
      while (clock.now() < 600_000) if (await limiter.acquireWithin('1m')) used++
    }
    await clock.until(Promise.all([demand(), demand(), demand()]))
    expect(used / 6_000).toBeGreaterThan(0.96)
  })
})
