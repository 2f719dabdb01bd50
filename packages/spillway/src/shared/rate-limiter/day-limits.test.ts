import { describe, expect, it } from 'vitest'
import { memoryStore } from '../../store/memory/memory-store.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import type { SharedLimit } from './options.js'
import type { Permit } from './permit.js'
import { createSharedRateLimiter } from './rate-limiter.js'

const HOUR_MS = 3_600_000

/** At 22:00 of the day before clocks go forward in California. */
const EVENING = Date.UTC(2027, 2, 14, 6)

function setUp(limits: SharedLimit[], wallMs = EVENING) {
  const clock = createVirtualClock({ wallMs })
  const store = memoryStore({ clock })
  const limiter = createSharedRateLimiter({ name: 'vendor', store, clock, limits })
  const take = async (calls: number) => (await limiter.takeUpTo(calls)).length
  return { clock, limiter, take }
}

const PER_DAY = { limit: 5, window: 'day', timeZone: 'America/Los_Angeles' } as const

describe('limits per calendar day', () => {
  it('a limit per day is free again at midnight of its time zone, and after 23 hours when clocks go forward', async () => {
    const { clock, limiter, take } = setUp([PER_DAY])
    expect(await take(9)).toBe(5)
    const [figures] = (await limiter.figures()).limits
    expect(figures).toMatchObject({ used: 5, remaining: 0, nextFreeMs: 2 * HOUR_MS })
    await clock.advance(2 * HOUR_MS - 1)
    expect(await take(9)).toBe(0)
    await clock.advance(1)
    expect(await take(9)).toBe(5)
    const refused = await limiter.acquire()
    expect(refused).toMatchObject({ allowed: false, retryAfterMs: 23 * HOUR_MS })
  })

  it('nothing is granted in the last 100 ms of a day, because it could reach the vendor on the next one', async () => {
    const { clock, limiter, take } = setUp([PER_DAY])
    await clock.advance(2 * HOUR_MS - 100)
    expect(await take(1)).toBe(0)
    expect((await limiter.figures()).limits[0]).toMatchObject({ remaining: 0, nextFreeMs: 100 })
    await clock.advance(100)
    expect(await take(1)).toBe(1)
  })

  it('settling on the same day gives units back, and on the next day changes nothing there', async () => {
    const { clock, limiter } = setUp([{ ...PER_DAY, unit: 'tokens', limit: 100 }])
    const early = await limiter.acquire({ cost: { tokens: 60 } })
    const late = await limiter.acquire({ cost: { tokens: 40 } })
    if (early.allowed) early.permit.settle({ tokens: 10 })
    await clock.settle()
    expect((await limiter.figures()).limits[0]).toMatchObject({ used: 50 })
    await clock.advance(3 * HOUR_MS)
    if (late.allowed) late.permit.settle({ tokens: 10 })
    await clock.settle()
    expect((await limiter.figures()).limits[0]).toMatchObject({ used: 0, remaining: 100 })
  })

  it("a vendor's header about its short window does not use up the limit per day", async () => {
    const perMinute = { limit: 20, windowMs: '1m' } as const
    const { limiter } = setUp([{ ...PER_DAY, limit: 1_000 }, perMinute])
    const [permit] = await limiter.takeUpTo(1)
    const headers = { 'x-ratelimit-remaining-requests': '3', 'x-ratelimit-reset-requests': '6s' }
    await limiter.updateFromResponse({ status: 200, headers }, permit as Permit)
    const { limits } = await limiter.figures()
    expect(limits.map(({ id, remaining }) => [id, remaining])).toEqual([
      ['requests', 999],
      ['requests#2', 3],
    ])
  })

  it('a call that needs units of a minute and of a day gets both or none', async () => {
    const { clock, limiter, take } = setUp([PER_DAY, { limit: 3, windowMs: '1m' }])
    expect(await take(9)).toBe(3)
    await clock.advance(70_000)
    expect(await take(9)).toBe(2)
    const { limits } = await limiter.figures()
    expect(limits.map(({ used }) => used)).toEqual([5, 2])
  })
})

describe('sub-windows', () => {
  it('a limit with a sub-window never grants more than its part in any sub-window, nor the whole in any window', async () => {
    const limit = { limit: 60, windowMs: '1m', subWindowMs: '10s' } as const
    const { clock, limiter, take } = setUp([limit])
    const starts: number[] = []
    for (let second = 0; second < 180; second++) {
      const granted = await take(4)
      for (let each = 0; each < granted; each++) starts.push(clock.now())
      await clock.advance(1_000)
    }
    const mostIn = (windowMs: number) =>
      Math.max(...starts.map((at) => starts.filter((t) => t >= at && t < at + windowMs).length))
    expect(mostIn(10_000)).toBe(10)
    expect(mostIn(60_000)).toBeLessThanOrEqual(60)
    expect(starts.length).toBeGreaterThan(150)
    const ids = (await limiter.figures()).limits.map(({ id, limit: units }) => [id, units])
    expect(ids).toEqual([
      ['requests', 60],
      ['requests/10s', 10],
    ])
  })

  it('a call that costs more than the sub-window grants takes all of it', async () => {
    const limit = { unit: 'tokens', limit: 600, windowMs: '1m', subWindowMs: '1s' } as const
    const { limiter } = setUp([limit])
    expect(await limiter.acquire({ cost: { tokens: 50 } })).toMatchObject({ allowed: true })
    expect((await limiter.figures()).limits.map(({ used }) => used)).toEqual([50, 10])
    expect(await limiter.acquire({ cost: { tokens: 1 } })).toMatchObject({ allowed: false })
  })
})
