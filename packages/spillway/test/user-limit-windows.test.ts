/** User limits that are exact sliding windows, with the memory store. */
import { describe, expect, it } from 'vitest'
import { createRandom } from '../src/core/random.js'
import type { Microseconds } from '../src/core/time/clock.js'
import { sleep } from '../src/core/time/sleep.js'
import type { Subject, UserLevel } from '../src/shared/user-limits/levels.js'
import { createUserLimits } from '../src/shared/user-limits/user-limits.js'
import { createMemoryLevels } from '../src/store/memory/memory-levels.js'
import { memoryStore } from '../src/store/memory/memory-store.js'
import { createFaultyStore } from '../src/testing/faulty-store.js'
import { createVirtualClock } from '../src/testing/virtual-clock.js'
import { fc } from './fast-check.js'
import { createGuardPod, EVERYWHERE } from './guard-pod.js'
import { usualOrLong } from './long-run.js'
import { replayWindow, windowHistories } from './window-histories.js'

const MINUTE = 60_000
const sliding = { algorithm: 'sliding-window', windowMs: MINUTE } as const

function local(...levels: UserLevel[]) {
  const clock = createVirtualClock()
  const limits = createUserLimits({ store: memoryStore({ clock }), levels, clock })
  const passing = async (calls: number, subject: Subject = { user: 'ann' }) => {
    let passed = 0
    for (let made = 0; made < calls; made++) if ((await limits.check(subject)).allowed) passed++
    return passed
  }
  return { clock, limits, passing }
}

describe('sliding windows of user limits', () => {
  it('user with a sliding window of 60 per minute gets 60 calls in the first minute, however often it asks', async () => {
    const { clock, passing } = local({ per: 'user', limit: 60, ...sliding })
    let passed = 0
    for (let second = 0; second < 60; second++) {
      passed += await passing(5)
      await clock.advance(1_000)
    }
    expect(passed).toBe(60)
    // The first calls leave the window one after the other, and others take their place.
    for (let second = 0; second < 12; second++) {
      expect(await passing(8)).toBe(5)
      await clock.advance(1_000)
    }
    expect(await passing(8)).toBe(0)
  })

  it('user that always asks gets nearly all of a large limit in every window', async () => {
    for (const limit of [60, 100, 1_000]) {
      const { clock, passing } = local({ per: 'user', limit, ...sliding })
      let passed = 0
      for (let step = 0; step < 2_400; step++) {
        passed += await passing(Math.ceil(limit / 100))
        await clock.advance(500)
      }
      const windows = (2_400 * 500) / MINUTE
      expect(passed).toBeLessThanOrEqual(limit * (windows + 1))
      expect(passed).toBeGreaterThan(limit * windows * 0.97)
    }
  })

  it('no window has more than its limit, and refused requests are granted exactly after their wait', async () => {
    let [nowUs, key] = [0, 0]
    const time: Microseconds = () => nowUs
    const store = createMemoryLevels(time)
    const total = { started: 0, refunded: 0, refused: 0 }
    await fc.assert(
      fc.asyncProperty(windowHistories, async (history) => {
        const counts = await replayWindow(store, `k${key++}`, history, (us) => {
          nowUs = us
        })
        for (const name of ['started', 'refunded', 'refused'] as const) total[name] += counts[name]
      }),
      { numRuns: usualOrLong(150, 5_000) },
    )
    expect(Math.min(total.started, total.refunded, total.refused)).toBeGreaterThan(500)
  })

  it('check() of a sliding window returns what is left, when all is back, and the exact wait', async () => {
    const { clock, limits } = local({ per: 'user', limit: 3, ...sliding })
    const ann = { user: 'ann' }
    expect(await limits.check(ann)).toMatchObject({ allowed: true, remaining: 2, resetMs: MINUTE })
    await clock.advance(10_000)
    expect(await limits.check({ ...ann, cost: 2 })).toMatchObject({ allowed: true, remaining: 0 })
    await clock.advance(10_000)
    const refused = { allowed: false, level: 'user', remaining: 0, resetMs: 50_000 }
    expect(await limits.check(ann)).toEqual({ ...refused, retryAfterMs: 40_000 })
    expect(await limits.check({ ...ann, cost: 2 })).toEqual({ ...refused, retryAfterMs: 50_000 })
    await clock.advance(39_999)
    expect(await limits.check(ann)).toMatchObject({ allowed: false, retryAfterMs: 1 })
    await clock.advance(1)
    expect(await limits.check(ann)).toMatchObject({ allowed: true, retryAfterMs: 0 })
    expect(await limits.check({ user: 'bob', cost: 50 })).toMatchObject({
      allowed: true,
      remaining: 0,
    })
  })

  it('every level can be a sliding window, alone and beside token buckets, and a refusal charges no level', async () => {
    const { clock, limits, passing } = local(
      { per: 'global', limit: 9, ...sliding },
      { per: 'tier', limit: { free: 8 }, ...sliding },
      { per: 'user', limit: 5, windowMs: MINUTE },
      { per: 'ip', limit: 7, ...sliding },
      { per: 'endpoint', limit: { '/export': 2 }, ...sliding },
    )
    const ann = { user: 'ann', tier: 'free', ip: '10.0.0.1', endpoint: '/export' }
    expect(await passing(5, ann)).toBe(2)
    expect(await limits.check(ann)).toMatchObject({ level: 'endpoint', retryAfterMs: MINUTE })
    // Three of the user's five units are left, although it made six requests.
    expect(await passing(5, { ...ann, endpoint: '/other' })).toBe(3)
    expect(await passing(5, { ...ann, user: 'bob', endpoint: '/other' })).toBe(2)
    expect(await limits.check({ ...ann, user: 'eve', endpoint: '/x' })).toMatchObject({
      level: 'ip',
    })
    expect(await passing(5, { user: 'kim', tier: 'free', ip: '10.0.0.2' })).toBe(1)
    expect(await passing(5, { user: 'joe' })).toBe(1)
    expect(await limits.check({ user: 'joe' })).toMatchObject({ allowed: false, level: 'global' })
    await clock.advance(MINUTE)
    expect(await passing(5, ann)).toBe(2)
  })

  it('sliding windows by tier limit each user of the tier', async () => {
    const { passing } = local({ per: 'user', limit: { free: 3, pro: 6 }, ...sliding })
    expect(await passing(9, { user: 'ann', tier: 'free' })).toBe(3)
    expect(await passing(9, { user: 'bob', tier: 'free' })).toBe(3)
    expect(await passing(9, { user: 'eve', tier: 'pro' })).toBe(6)
    expect(await passing(9, { user: 'kim', tier: 'new' })).toBe(9)
  })

  it('burst and unknown algorithms of a level are rejected with their path', () => {
    expect(() => local({ per: 'user', limit: 3, ...sliding, burst: 5 })).toThrow(
      "userLimits.levels[0].burst: applies to 'token-bucket' only: a sliding window grants at most limit at once",
    )
    const typo = { per: 'user', limit: 3, windowMs: MINUTE, algorithm: 'sliding-windw' }
    expect(() => local(typo as unknown as UserLevel)).toThrow("did you mean 'sliding-window'?")
  })

  it('refund takes back the charge of its own request, and nothing once that has left the window', async () => {
    let nowUs = 0
    const store = createMemoryLevels(() => nowUs)
    const level = { key: 'u', limit: 2, windowUs: 60, burst: 2, algorithm: sliding.algorithm }
    const request = { levels: [level], cost: 1 }
    const check = async (atUs: number) => {
      nowUs = atUs
      return (await store.check([request]))[0]
    }
    const neverStarted = await check(1_000)
    await check(1_030)
    nowUs = 1_031
    await store.refund([{ ...request, ...neverStarted }])
    expect(await check(1_031)).toMatchObject({ refusedBy: 0, remaining: 0 })
    // The requests of 1,030 and 1,031 still count.
    expect(await check(1_060)).toMatchObject({ refusedBy: 1, waitUs: 30 })
    await store.refund([{ ...request, ...neverStarted }])
    expect(await check(1_061)).toMatchObject({ refusedBy: 1, waitUs: 29 })
  })

  it('after the clock was set back, a used-up sliding window frees its units after one window', async () => {
    let nowUs = 1_000_000_000_000
    const store = createMemoryLevels(() => nowUs)
    const level = {
      key: 'u',
      limit: 2,
      windowUs: 60_000_000,
      burst: 2,
      ...{ algorithm: sliding.algorithm },
    }
    const check = async () => (await store.check([{ levels: [level], cost: 1 }]))[0]?.refusedBy
    expect([await check(), await check(), await check()]).toEqual([0, 0, 1])
    nowUs -= 3_600_000_000
    for (let second = 0; second < 60; second++) {
      expect(await check()).toBe(1)
      nowUs += 1_000_000
    }
    expect([await check(), await check(), await check()]).toEqual([0, 0, 1])
  })
})

describe.each(EVERYWHERE)('sliding windows in a guard, store: %s', (where) => {
  const userLimits = [
    { per: 'user', limit: 2, windowMs: '1m', algorithm: 'sliding-window' },
  ] as const

  it('call that never starts gets its unit of the sliding window back', async () => {
    const { clock, run, quick } = createGuardPod(
      { userLimits, queue: { size: 5, timeoutMs: 1_000 }, concurrency: { limit: 1 } },
      { where },
    )
    run(() => sleep(clock, 5_000))
    const waiting = [quick({ user: 'ann' }), quick({ user: 'ann' })]
    await clock.advance(100)
    const third = quick({ user: 'ann' })
    await clock.advance(100)
    expect(third.error).toMatchObject({ code: 'USER_LIMITED', details: { level: 'user' } })
    await clock.advance(2_000)
    for (const { error } of waiting) expect(error).toMatchObject({ code: 'QUEUE_TIMEOUT' })
    await clock.advance(5_000)
    const later = [quick({ user: 'ann' }), quick({ user: 'ann' }), quick({ user: 'ann' })]
    await clock.advance(100)
    expect(later.map(({ state }) => state)).toEqual(['resolved', 'resolved', 'rejected'])
  })

  it('refused call has the exact time until the sliding window has a unit again', async () => {
    const { clock, quick } = createGuardPod({ userLimits }, { where })
    quick({ user: 'ann' })
    await clock.advance(10_000)
    quick({ user: 'ann' })
    await clock.advance(100)
    const refused = quick({ user: 'ann' })
    await clock.advance(100)
    const { retryAfterMs } = refused.error as { retryAfterMs: number }
    expect(retryAfterMs).toBeGreaterThan(49_000)
    expect(retryAfterMs).toBeLessThanOrEqual(50_000)
    await clock.advance(retryAfterMs)
    const again = quick({ user: 'ann' })
    await clock.advance(100)
    expect(again.state).toBe('resolved')
  })
})

describe('sliding windows while the store is unreachable', () => {
  it('sliding window with the rule local grants its limit, with share the part of this pod, in any window', async () => {
    for (const [outage, most] of [
      ['local', 8],
      ['share', 2],
    ] as const) {
      const clock = createVirtualClock()
      const store = createFaultyStore(memoryStore({ clock }), { clock, random: createRandom(1) })
      const levels: UserLevel[] = [{ per: 'user', limit: 8, outage, ...sliding }]
      const limits = createUserLimits({ store, levels, clock, expectedPods: 4 })
      store.goDown()
      const grants: number[] = []
      for (let step = 0; step < 240; step++) {
        if ((await clock.until(limits.check({ user: 'ann' }))).allowed) grants.push(clock.now())
        await clock.advance(500)
      }
      for (const fromMs of grants) {
        const inWindow = grants.filter((atMs) => atMs >= fromMs && atMs < fromMs + MINUTE)
        expect(inWindow.length).toBeLessThanOrEqual(most)
      }
      expect(grants.length).toBeGreaterThanOrEqual(2 * most)
    }
  })
})
