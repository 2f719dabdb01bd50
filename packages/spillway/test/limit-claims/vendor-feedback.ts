/** Pauses, set manually or requested by an answer of the vendor. */
import type { Permit, SharedRateLimiter, SharedRateLimiterOptions } from 'spillway/shared'
import { describe, expect } from 'vitest'
import { it } from '../concurrent-tests.js'
import { createVendor, type Fleet, LONG_MS, passing, take, usedOf } from './fleet.js'

/** The clocks of this process and of the server differ by no more. */
const ROUNDED_MS = 2

export function claimVendorFeedback(fleet: Fleet): void {
  const createdMs = new WeakMap<() => SharedRateLimiter, number>()
  const create = (options: Partial<SharedRateLimiterOptions> = {}) => {
    const pod = createVendor(fleet, { limits: [{ limit: 100, windowMs: LONG_MS }], ...options })
    createdMs.set(pod, fleet.clock.now())
    return pod
  }

  /** Remaining pause of a lane, as seen by a new pod. */
  const pausedMs = async (pod: () => SharedRateLimiter, lane = 'default') =>
    (await pod().figures({ lane })).pausedMs

  /** Expects a pause of `ms` that began at `sinceMs` or later. */
  const expectPause = async (
    pod: () => SharedRateLimiter,
    ms: number,
    sinceMs = createdMs.get(pod) ?? 0,
  ) => {
    const paused = await pausedMs(pod)
    const agoMs = fleet.clock.now() - sinceMs
    // Differences of times are rounded.
    expect(paused).toBeLessThanOrEqual(ms + 0.001)
    expect(paused).toBeGreaterThanOrEqual(Math.max(0, ms - agoMs - ROUNDED_MS))
  }

  const throttled = (headers: object = {}) => ({ status: 429, headers })

  describe('pauseFor()', () => {
    it('pauseFor() stops every pod, and refusals are marked as paused', async () => {
      const pod = create()
      await pod().pauseFor('10s')
      const answer = await pod().acquire()
      expect(answer).toMatchObject({ allowed: false, paused: true })
      const { retryAfterMs } = answer as { retryAfterMs: number }
      expect(retryAfterMs).toBeGreaterThan(5_000)
      // Differences of times are rounded.
      expect(retryAfterMs).toBeLessThanOrEqual(10_000.001)
      expect(await usedOf(pod)).toEqual({ requests: 0 })
    })

    it('a pause ends by itself and grants the requests that waited for its end', async () => {
      const pod = create()
      const startMs = fleet.clock.now()
      await pod().pauseFor(300)
      const answers = [1, 2, 3].map(() => pod().acquireWithin('10s'))
      for (const answer of answers) {
        expect(await fleet.until(answer)).toMatchObject({ allowed: true })
      }
      expect(fleet.clock.now() - startMs).toBeGreaterThanOrEqual(300)
      expect(await pausedMs(pod)).toBe(0)
    })

    it('the longer of two pauses applies, whichever came first', async () => {
      const pod = create()
      await pod().pauseFor('20s')
      await pod().pauseFor('10s')
      await expectPause(pod, 20_000)
      await pod().pauseFor('40s')
      await expectPause(pod, 40_000)
    })

    it('a pause is at most maxPauseMs', async () => {
      const pod = create({ maxPauseMs: '15s' })
      await pod().pauseFor('1h')
      await expectPause(pod, 15_000)
    })

    it('pauseFor() applies to one lane only', async () => {
      const pod = create()
      await pod().pauseFor('10s', { lane: 'mini' })
      expect(await passing(pod, 2, { lane: 'mini' })).toBe(0)
      expect(await passing(pod, 2, { lane: 'large' })).toBe(2)
    })
  })

  describe('updateFromResponse()', () => {
    it('a 429 pauses the fleet for its Retry-After', async () => {
      const pod = create()
      const one = pod()
      await one.updateFromResponse(throttled({ 'Retry-After': '20' }), await take(one))
      await expectPause(pod, 20_000)
      expect(await pod().acquire()).toMatchObject({ allowed: false, paused: true })
    })

    it.each([503, 529])('a %d pauses the fleet for its Retry-After', async (status) => {
      const pod = create()
      const one = pod()
      await one.updateFromResponse({ status, headers: { 'retry-after': '20' } }, await take(one))
      await expectPause(pod, 20_000)
    })

    it.each([503, 529])(
      'a %d answer without Retry-After does not pause the fleet',
      async (status) => {
        const pod = create()
        const one = pod()
        await one.updateFromResponse({ status, headers: {} }, await take(one))
        expect(await pausedMs(pod)).toBe(0)
      },
    )

    it('Retry-After on a successful answer does not pause the fleet', async () => {
      const pod = create()
      const one = pod()
      await one.updateFromResponse(
        { status: 202, headers: { 'retry-after': '20' } },
        await take(one),
      )
      expect(await pausedMs(pod)).toBe(0)
    })

    it('updateFromResponse() pauses the lane of the permit', async () => {
      const pod = create()
      const one = pod()
      await one.updateFromResponse(
        throttled({ 'retry-after': '20' }),
        await take(one, { lane: 'mini' }),
      )
      expect(await pausedMs(pod, 'mini')).toBeGreaterThan(0)
      expect(await pausedMs(pod)).toBe(0)
    })

    it('a pause requested by the vendor is at most maxPauseMs', async () => {
      const pod = create({ maxPauseMs: '15s' })
      const one = pod()
      await one.updateFromResponse(throttled({ 'retry-after-ms': '3600000' }), await take(one))
      await expectPause(pod, 15_000)
    })

    it('a 429 without Retry-After pauses for basePauseMs, doubled on each repetition', async () => {
      const pod = create({ basePauseMs: 600 })
      for (const pauseMs of [600, 1_200]) {
        const one = pod()
        const answer = await fleet.until(one.acquireWithin('10s'))
        const sinceMs = fleet.clock.now()
        await one.updateFromResponse(throttled(), (answer as { permit: Permit }).permit)
        await expectPause(pod, pauseMs, sinceMs)
      }
    })

    it('pauses start at basePauseMs again after an answer with remaining units', async () => {
      const pod = create({ basePauseMs: 600 })
      const one = pod()
      await one.updateFromResponse(throttled(), await take(one))
      const next = await fleet.until(one.acquireWithin('10s'))
      const left = { 'x-ratelimit-remaining-requests': '90' }
      await one.updateFromResponse(
        { status: 200, headers: left },
        (next as { permit: Permit }).permit,
      )
      await one.updateFromResponse(throttled(), await take(one))
      await expectPause(pod, 600)
    })

    it('pauses start at basePauseMs again after an answer without headers', async () => {
      const pod = create({ basePauseMs: 500 })
      const one = pod()
      await one.updateFromResponse(throttled(), await take(one))
      const next = await fleet.until(one.acquireWithin('10s'))
      await one.updateFromResponse(
        { status: 200, headers: {} },
        (next as { permit: Permit }).permit,
      )
      await fleet.sleep(1_200)
      await one.updateFromResponse(throttled(), await take(one))
      await expectPause(pod, 500)
    })

    it('the refusals of one burst count as one', async () => {
      const pod = create({ basePauseMs: '5s' })
      const one = pod()
      const permits = await one.takeUpTo(10)
      await Promise.all(permits.map((permit) => one.updateFromResponse(throttled(), permit)))
      await expectPause(pod, 5_000)
    })

    it.each([
      {
        dialect: 'OpenAI',
        unit: 'tokens',
        headers: { 'x-ratelimit-remaining-tokens': '0', 'x-ratelimit-reset-tokens': '12s300ms' },
        pauseMs: 12_300,
      },
      {
        dialect: 'the IETF draft',
        unit: 'requests',
        headers: { RateLimit: '"default";r=0;t=12' },
        pauseMs: 12_000,
      },
      {
        dialect: 'the older IETF draft',
        unit: 'requests',
        headers: { 'ratelimit-limit': '100', 'ratelimit-remaining': '0', 'ratelimit-reset': '12' },
        pauseMs: 12_000,
      },
    ])(
      'remaining 0 in headers of $dialect pauses the fleet until the reset',
      async (headersCase) => {
        const pod = create({ limits: [{ unit: headersCase.unit, limit: 100, windowMs: LONG_MS }] })
        const one = pod()
        await one.updateFromResponse({ status: 200, headers: headersCase.headers }, await take(one))
        await expectPause(pod, headersCase.pauseMs)
      },
    )

    it('remaining 0 in headers of Anthropic pauses the fleet until the reset', async () => {
      const pod = create({ limits: [{ unit: 'inputTokens', limit: 100, windowMs: LONG_MS }] })
      const one = pod()
      const headers = new Headers({
        'anthropic-ratelimit-input-tokens-remaining': '0',
        'anthropic-ratelimit-input-tokens-reset': new Date(
          fleet.clock.wallMs() + 12_000,
        ).toISOString(),
      })
      await one.updateFromResponse({ status: 200, headers }, await take(one))
      await expectPause(pod, 12_000)
    })

    it("a reset date is read by the vendor's clock, however wrong the local clock is", async () => {
      const pod = create({ limits: [{ unit: 'inputTokens', limit: 100, windowMs: LONG_MS }] })
      const { clock } = fleet
      const one = pod({
        clock: {
          now: () => clock.now(),
          wallMs: () => clock.wallMs() + 3_600_000,
          schedule: (delayMs, run) => clock.schedule(delayMs, run),
          pollTurn: (run) => clock.pollTurn(run),
        },
      })
      // The header Date has whole seconds.
      const wholeMs = Math.floor(clock.wallMs() / 1_000) * 1_000
      const headers = {
        date: new Date(wholeMs).toUTCString(),
        'anthropic-ratelimit-input-tokens-remaining': '0',
        'anthropic-ratelimit-input-tokens-reset': new Date(wholeMs + 12_000).toISOString(),
      }
      await one.updateFromResponse({ status: 200, headers }, await take(one))
      await expectPause(pod, 12_000)
    })

    it('remaining units of the vendor can lower but never raise the available units', async () => {
      const pod = create()
      const one = pod()
      const permit = await take(one)
      const left = (count: number) => ({
        status: 200,
        headers: { 'x-ratelimit-remaining-requests': String(count) },
      })
      await one.updateFromResponse(left(99), permit)
      expect(await usedOf(pod)).toEqual({ requests: 1 })
      await one.updateFromResponse(left(30), permit)
      expect(await usedOf(pod)).toEqual({ requests: 70 })
      await one.updateFromResponse(left(80), permit)
      expect(await usedOf(pod)).toEqual({ requests: 70 })
      expect(await passing(pod, 40)).toBe(30)
    })

    it('nothing is granted when the vendor reports zero remaining without a reset time', async () => {
      const pod = create()
      const one = pod()
      const headers = { 'x-ratelimit-remaining-requests': '0' }
      await one.updateFromResponse({ status: 200, headers }, await take(one))
      expect(await passing(pod, 3)).toBe(0)
    })

    it('headers of an earlier call are ignored after those of a later call', async () => {
      const pod = create()
      const [one, two] = [pod(), pod()]
      const earlier = await take(one)
      await fleet.sleep(5)
      const later = await take(two)
      const headers = { 'x-ratelimit-remaining-requests': '90' }
      await two.updateFromResponse({ status: 200, headers }, later)
      await one.updateFromResponse(throttled({ 'retry-after': '20' }), earlier)
      expect(await pausedMs(pod)).toBe(0)
      await two.updateFromResponse(throttled({ 'retry-after': '20' }), later)
      await expectPause(pod, 20_000)
    })

    it('an answer without rate limit headers changes nothing', async () => {
      const pod = create()
      const one = pod()
      await one.updateFromResponse({ status: 200, headers: undefined }, await take(one))
      await one.updateFromResponse(
        { status: 500, headers: { 'content-type': 'text/plain' } },
        await take(one),
      )
      expect(await pausedMs(pod)).toBe(0)
      expect(await usedOf(pod)).toEqual({ requests: 2 })
    })
  })
}
