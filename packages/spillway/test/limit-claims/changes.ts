/** Limits that change while pods run. */
import type { SharedLimit, SharedRateLimiter } from 'spillway/shared'
import { describe, expect } from 'vitest'
import { it } from '../concurrent-tests.js'
import {
  createVendor,
  type Fleet,
  grantedMs,
  LONG_MS,
  passing,
  permitOf,
  take,
  usedOf,
} from './fleet.js'

/** The largest number of times within any window of this length. */
function mostWithin(timesMs: readonly number[], windowMs: number): number {
  const sorted = timesMs.toSorted((a, b) => a - b)
  let start = 0
  let most = 0
  for (const [index, ms] of sorted.entries()) {
    while (ms - sorted[start]! >= windowMs) start++
    most = Math.max(most, index - start + 1)
  }
  return most
}

export function claimChanges(fleet: Fleet): void {
  const windowMs = LONG_MS
  const tokens = (count: number) => ({ cost: { tokens: count } })
  const ofTokens = (limit: number, more: Partial<SharedLimit> = {}) =>
    createVendor(fleet, { limits: [{ unit: 'tokens', limit, windowMs, ...more }] })

  describe.each(['sliding-window', 'token-bucket', 'fixed-window'] as const)(
    'setLimits() on a %s',
    (algorithm) => {
      const limits = (limit: number): SharedLimit[] => [{ limit, windowMs, algorithm }]

      it('other pods obey setLimits() and what was counted still counts', async () => {
        const pod = createVendor(fleet, { limits: limits(10) })
        const [one, other] = [pod(), pod()]
        await other.takeUpTo(4)
        await one.setLimits(limits(5))
        expect(await fleet.answered(other.acquire())).toMatchObject({ allowed: true })
        expect(await passing(pod, 9)).toBe(0)
        expect(await usedOf(pod)).toEqual({ requests: 5 })
        await other.setLimits(limits(20))
        expect(await passing(pod, 30)).toBe(15)
        expect((await one.figures()).limits).toMatchObject([
          { id: 'requests', limit: 20, used: 20, remaining: 0 },
        ])
      })
    },
  )

  it('every pod obeys a limit that is halved and doubled under load', async () => {
    const [windowMs, jitterMs] = [150, 400]
    const WINDOW_MS = windowMs + jitterMs
    const limits = (limit: number): SharedLimit[] => [{ limit, windowMs }]
    const pod = createVendor(fleet, { jitterMs, limits: limits(20) })
    const grants: number[] = []
    let running = true
    const load = async (caller: SharedRateLimiter) => {
      while (running && grants.length < 10_000) {
        grants.push(grantedMs(permitOf(await caller.acquireWithin('10s'))))
      }
    }
    const callers = [pod(), pod(), pod()].flatMap((each) => Array.from({ length: 20 }, () => each))
    const allLoad = Promise.all(callers.map(load))
    const operator = pod()
    /** Approximate times of the store between which the limit changed. */
    const change = async (limit: number, enough: number) => {
      const beforeMs = Math.max(...grants)
      await operator.setLimits(limits(limit))
      const afterMs = Math.max(...grants)
      await fleet.sleep(3.5 * WINDOW_MS)
      // A busy machine needs longer until a window is well used.
      while (most(afterMs + lagMs, Number.POSITIVE_INFINITY) <= enough) await fleet.sleep(WINDOW_MS)
      return { beforeMs, afterMs }
    }
    const most = (fromMs: number, toMs: number) =>
      mostWithin(
        grants.filter((ms) => ms >= fromMs && ms <= toMs),
        WINDOW_MS,
      )
    // A pod may have been idle for most of a window when the limit changed.
    const lagMs = 1.5 * WINDOW_MS
    do await fleet.sleep(WINDOW_MS / 2)
    while (grants.length < 20)
    const halved = await change(10, 5)
    const doubled = await change(40, 20)
    running = false
    await fleet.until(allLoad)

    expect(most(0, halved.beforeMs)).toBe(20)
    const half = most(halved.afterMs + lagMs, doubled.beforeMs)
    expect(half).toBeLessThanOrEqual(10)
    expect(half).toBeGreaterThan(5)
    const twice = most(doubled.afterMs, Number.POSITIVE_INFINITY)
    expect(twice).toBeLessThanOrEqual(40)
    expect(twice).toBeGreaterThan(20)
  })

  it('used units are kept when a window becomes longer or shorter', async () => {
    const pod = ofTokens(10)
    await take(pod(), tokens(7))
    await pod().setLimits([{ unit: 'tokens', limit: 10, windowMs: windowMs / 2 }])
    expect(await usedOf(pod)).toEqual({ tokens: 7 })
    expect(await passing(pod, 9, tokens(1))).toBe(3)
    await pod().setLimits([{ unit: 'tokens', limit: 10, windowMs }])
    expect(await usedOf(pod)).toEqual({ tokens: 10 })
  })

  it('the estimate of a waiting request is lowered to a lowered limit', async () => {
    const pod = createVendor(fleet, {
      jitterMs: 1_000,
      limits: [{ unit: 'tokens', limit: 10, windowMs: 200 }],
    })
    const one = pod()
    await take(one, tokens(10))
    const waiting = one.acquireWithin('30s', tokens(10))
    await fleet.sleep(20)
    await pod().setLimits([{ unit: 'tokens', limit: 5, windowMs: 200 }])
    expect(await fleet.until(waiting)).toMatchObject({ allowed: true })
  })

  it('waiting requests are still granted when a limit is added', async () => {
    const short = { windowMs: 200 }
    const pod = createVendor(fleet, { jitterMs: 1_000, limits: [{ limit: 1, ...short }] })
    const one = pod()
    await take(one)
    const waiting = one.acquireWithin('30s')
    await fleet.sleep(20)
    await one.setLimits([
      { limit: 1, ...short },
      { unit: 'tokens', limit: 100, ...short },
    ])
    expect(await fleet.until(waiting)).toMatchObject({ allowed: true })
  })

  it('permits are settled on the limits they were booked on', async () => {
    const requests = { limit: 10, windowMs }
    const ofUnit = { unit: 'tokens', limit: 100, windowMs }
    const pod = createVendor(fleet, { limits: [requests, ofUnit] })
    const one = pod()
    const permit = await take(one, tokens(50))
    await one.setLimits([ofUnit, requests])
    permit.settle({ tokens: 10 })
    await one.close()
    expect(await usedOf(pod)).toEqual({ requests: 1, tokens: 10 })
  })

  it('pods of two releases with different windows both get permits', async () => {
    const ofWindow = (ms: number) => ({ limits: [{ limit: 1, windowMs: ms }] })
    const pod = createVendor(fleet, { jitterMs: 1_000, ...ofWindow(200) })
    const [old, young] = [pod(), pod(ofWindow(250))]
    await take(old)
    const answers = await fleet.until(
      Promise.all([old.acquireWithin('30s'), young.acquireWithin('30s')]),
    )
    expect(answers).toMatchObject([{ allowed: true }, { allowed: true }])
  })

  describe('override()', () => {
    it('override() applies to every pod and ends by itself', async () => {
      const pod = ofTokens(10)
      await take(pod(), tokens(2))
      await pod().override('tokens', 4, 3_000)
      expect(await passing(pod, 9, tokens(1))).toBe(2)
      expect((await pod().figures()).limits).toMatchObject([{ limit: 4, remaining: 0 }])
      await fleet.sleep(3_050)
      expect((await pod().figures()).limits).toMatchObject([{ limit: 10, remaining: 6 }])
      expect(await passing(pod, 9, tokens(1))).toBe(6)
    })

    it('override() may exceed the limit and can be ended early', async () => {
      const pod = ofTokens(5)
      const one = pod()
      await one.override('tokens', 8, '10m')
      expect(await passing(pod, 20, tokens(1))).toBe(8)
      await one.override('tokens', 8, 0)
      expect((await pod().figures()).limits).toMatchObject([
        { id: 'tokens', limit: 5, used: 8, remaining: 0 },
      ])
    })

    it('override() stays in force when the limits change', async () => {
      const pod = ofTokens(10)
      await pod().override('tokens', 3, '10m')
      await pod().setLimits([{ unit: 'tokens', limit: 20, windowMs }])
      expect(await passing(pod, 9, tokens(1))).toBe(3)
      await pod().override('tokens', 3, 0)
      expect(await passing(pod, 30, tokens(1))).toBe(17)
    })

    it('override() also lowers estimates above it', async () => {
      const pod = ofTokens(10)
      await pod().override('tokens', 4, '10m')
      expect(await pod().acquire(tokens(10))).toMatchObject({ allowed: true })
      expect(await usedOf(pod)).toEqual({ tokens: 4 })
    })

    it('an ended override() leaves nothing behind', async () => {
      const pod = ofTokens(10)
      await pod().override('tokens', 50, 100)
      await take(pod(), tokens(1))
      // Longer than the store keeps it.
      await fleet.sleep(1_300)
      await take(pod(), tokens(1))
      expect(await passing(pod, 20, tokens(1))).toBe(8)
    })

    it('override() of an unknown limit rejects and names the known limits', async () => {
      const pod = ofTokens(10)()
      await expect(pod.override('token', 4, '10m')).rejects.toThrow("did you mean 'tokens'?")
      await expect(pod.override('images', 4, '10m')).rejects.toThrow('known: tokens')
    })
  })
}
