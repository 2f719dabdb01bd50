/** Requesting permits, waiting for them and giving up. */
import { setImmediate as tripsBegin } from 'node:timers/promises'
import { createDeadline, runWithDeadline } from 'spillway'
import { redisStore } from 'spillway/redis'
import { describe, expect, vi } from 'vitest'
import { it, onTestFinished } from '../concurrent-tests.js'
import {
  createVendor,
  type Fleet,
  grantedMs,
  isWaiting,
  LONG_MS,
  passing,
  permitOf,
  slowStore,
  take,
  usedOf,
} from './fleet.js'

/** As the store counts: the window plus the jitter allowance, which a busy machine must not exceed. */
const WINDOW_MS = 1_100
const SHORT = { windowMs: 100, jitterMs: 1_000 }
/** Tolerance for a busy machine. */
const LATE_MS = { memory: 1_000, redis: 20_000 }

export function claimAcquiring(fleet: Fleet): void {
  const ofRequests = (limit: number) =>
    createVendor(fleet, { limits: [{ limit, windowMs: LONG_MS }] })
  const ofTokens = (limit: number) =>
    createVendor(fleet, { limits: [{ unit: 'tokens', limit, windowMs: LONG_MS }] })
  const paced = (limit: number) =>
    createVendor(fleet, {
      jitterMs: SHORT.jitterMs,
      limits: [{ unit: 'tokens', limit, windowMs: SHORT.windowMs }],
    })
  const tokens = (count: number) => ({ cost: { tokens: count } })

  describe('acquire()', () => {
    it('acquire() answers at once, however often it was refused before', async () => {
      const pod = ofRequests(1)()
      await take(pod)
      for (let times = 0; times < 5; times++) {
        expect(await fleet.answered(pod.acquire())).toMatchObject({ allowed: false })
      }
    })

    it('concurrent acquire() calls are all refused at once when nothing is left', async () => {
      const pod = ofRequests(1)()
      await take(pod)
      const pending = Promise.all(Array.from({ length: 5 }, () => pod.acquire()))
      const answers = await fleet.answered(pending)
      expect(answers.filter(({ allowed }) => allowed)).toEqual([])
    })

    it('a thousand acquire() calls are answered although they exceed one round trip', async () => {
      const pod = ofRequests(300)()
      const pending = Promise.all(Array.from({ length: 1_000 }, () => pod.acquire()))
      const answers = await fleet.answered(pending)
      expect(answers.filter(({ allowed }) => allowed)).toHaveLength(300)
    })

    it('acquire() sees at once what another pod refunded', async () => {
      const pod = ofRequests(1)
      const [one, other] = [pod(), pod()]
      const permit = await take(one)
      expect(await other.acquire()).toMatchObject({ allowed: false })
      permit.refund()
      await one.close()
      expect(await fleet.answered(other.acquire())).toMatchObject({ allowed: true })
    })

    it('a refusal by acquire() states the wait', async () => {
      const pod = paced(1)
      await take(pod(), tokens(1))
      const answer = await pod().acquire(tokens(1))
      expect(answer).toMatchObject({ allowed: false, paused: false })
      const { retryAfterMs } = answer as { retryAfterMs: number }
      expect(retryAfterMs).toBeLessThanOrEqual((WINDOW_MS * 31) / 30)
      await fleet.sleep(retryAfterMs)
      await take(pod(), tokens(1))
    })
  })

  describe('acquireWithin()', () => {
    it('acquireWithin() waits until the store can grant and no longer', async () => {
      const pod = paced(1)
      const first = await take(pod(), tokens(1))
      const startMs = fleet.clock.now()
      const second = permitOf(await fleet.until(pod().acquireWithin('30s', tokens(1))))
      expect(grantedMs(second) - grantedMs(first)).toBeGreaterThanOrEqual(WINDOW_MS)
      expect(fleet.clock.now() - startMs).toBeLessThan((WINDOW_MS * 31) / 30 + LATE_MS[fleet.kind])
    })

    it('acquireWithin() refuses at once when the wait would exceed its limit', async () => {
      const pod = ofRequests(1)
      await take(pod())
      const answer = await fleet.answered(pod().acquireWithin('1m'))
      expect(answer).toMatchObject({ allowed: false, paused: false })
      expect((answer as { retryAfterMs: number }).retryAfterMs).toBeGreaterThan(60_000)
    })

    it('acquireWithin(0) takes an available permit although the store needs a moment', async () => {
      const one = ofRequests(1)({ store: slowStore(fleet, [30]) })
      expect(await fleet.until(one.acquireWithin(0))).toMatchObject({ allowed: true })
    })

    it('acquireWithin() never waits past the deadline of the request', async () => {
      const pod = paced(1)
      await take(pod(), tokens(1))
      const waitUnder = (ms: number) =>
        runWithDeadline(createDeadline(ms, fleet.clock), () => pod().acquireWithin('1h', tokens(1)))
      expect(await fleet.answered(waitUnder(10))).toMatchObject({ allowed: false })
      expect(await fleet.until(waitUnder(20_000))).toMatchObject({ allowed: true })
    })
  })

  describe('takeUpTo()', () => {
    it('takeUpTo() takes as many permits as are available', async () => {
      const pod = ofRequests(5)
      const one = pod()
      expect(await fleet.answered(one.takeUpTo(3))).toHaveLength(3)
      expect(await fleet.answered(one.takeUpTo(8))).toHaveLength(2)
      expect(await passing(pod, 3)).toBe(0)
    })

    it('takeUpTo() takes no permit when none is available', async () => {
      const pod = ofRequests(1)()
      await take(pod)
      expect(await fleet.answered(pod.takeUpTo(3))).toEqual([])
    })
  })

  describe('order of requests in one pod', () => {
    it('permits are granted in order, so a small request does not overtake a large one', async () => {
      const pod = paced(10)
      const one = pod()
      await take(one, tokens(8))
      const order: string[] = []
      const wait = (name: string, count: number) =>
        one.acquireWithin('30s', tokens(count)).then((answer) => {
          order.push(name)
          return permitOf(answer)
        })
      const waiting = Promise.all([wait('large', 9), wait('small', 1), wait('smaller', 1)])
      const [large, small] = await fleet.until(waiting)
      expect(order).toEqual(['large', 'small', 'smaller'])
      expect(grantedMs(large)).toBeLessThanOrEqual(grantedMs(small))
    })

    it('acquire() does not overtake a waiting request', async () => {
      const one = ofTokens(10)()
      await take(one, tokens(8))
      const leave = new AbortController()
      const large = one.acquireWithin('2h', { ...tokens(5), signal: leave.signal })
      large.catch(() => {})
      expect(await fleet.answered(one.acquire(tokens(1)))).toMatchObject({ allowed: false })
      leave.abort(new Error('enough'))
      await expect(large).rejects.toThrow('enough')
    })

    it('the next request is granted at once when the first one aborts', async () => {
      const pod = ofTokens(10)
      const one = pod()
      await take(one, tokens(8))
      const leave = new AbortController()
      const large = one.acquireWithin('2h', { ...tokens(5), signal: leave.signal })
      large.catch(() => {})
      const small = one.acquireWithin('2h', tokens(2))
      expect(await isWaiting(fleet, small)).toBe(true)
      leave.abort(new Error('enough'))
      await expect(large).rejects.toThrow('enough')
      expect(await fleet.answered(small)).toMatchObject({ allowed: true })
      expect(await usedOf(pod)).toEqual({ tokens: 10 })
    })

    it('the next request is granted although the first one aborts during its round trip', async () => {
      const pod = ofTokens(10)
      const one = pod({ store: slowStore(fleet, [0, 100]) })
      await take(one, tokens(8))
      const leave = new AbortController()
      const large = one.acquireWithin('2h', { ...tokens(5), signal: leave.signal })
      large.catch(() => {})
      await fleet.sleep(30)
      const startMs = fleet.clock.now()
      const small = one.acquireWithin('2h', tokens(2))
      await fleet.sleep(30)
      leave.abort(new Error('enough'))
      expect(await fleet.until(small)).toMatchObject({ allowed: true })
      expect(fleet.clock.now() - startMs).toBeLessThan(LONG_MS / 2)
    })

    it('a request with an aborted signal is not sent to the store', async () => {
      const pod = ofRequests(1)
      const one = pod()
      const left = one.acquire({ signal: AbortSignal.abort(new Error('too late')) })
      await expect(left).rejects.toThrow('too late')
      expect(await usedOf(pod)).toEqual({ requests: 0 })
    })

    // The memory store answers at once, so nothing can happen in between.
    if (fleet.kind === 'memory') return

    it('the permit of a request aborted during the round trip is returned', async () => {
      const pod = ofRequests(1)
      const leave = new AbortController()
      const pending = pod().acquire({ signal: leave.signal })
      await tripsBegin()
      leave.abort(new Error('enough'))
      await expect(pending).rejects.toThrow('enough')
      await vi.waitFor(async () => expect(await usedOf(pod)).toEqual({ requests: 0 }))
    })

    it('the permit of a request aborted during the round trip goes to the next request', async () => {
      const pod = ofRequests(1)
      const one = pod()
      const leave = new AbortController()
      const first = one.acquire({ signal: leave.signal })
      const second = one.acquire()
      await tripsBegin()
      leave.abort(new Error('enough'))
      await expect(first).rejects.toThrow('enough')
      expect(await second).toMatchObject({ allowed: true })
      expect(await usedOf(pod)).toEqual({ requests: 1 })
    })
  })

  describe('limiter close()', () => {
    it('close() rejects waiting and later requests', async () => {
      const one = ofRequests(1)()
      await take(one)
      const waiting = one.acquireWithin('2h')
      waiting.catch(() => {})
      expect(await isWaiting(fleet, waiting)).toBe(true)
      await one.close()
      const closed = expect.objectContaining({ code: 'SHUTTING_DOWN', stage: 'vendor-limit' })
      await expect(waiting).rejects.toEqual(closed)
      await expect(one.acquire()).rejects.toEqual(closed)
      await expect(one.acquireWithin(10)).rejects.toEqual(closed)
    })

    it('close() waits until the settlements have reached the store', async () => {
      const pod = ofRequests(600)
      const one = pod()
      const permits = await one.takeUpTo(600)
      for (const permit of permits) permit.refund()
      await one.close()
      expect(await usedOf(pod)).toEqual({ requests: 0 })
    })

    it('a permit granted during close() is returned', async () => {
      const pod = ofRequests(1)
      const one = pod({ store: slowStore(fleet, [300]) })
      const pending = one.acquire()
      await tripsBegin()
      const closed = fleet.until(one.close())
      await expect(pending).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
      await closed
      expect(await usedOf(pod)).toEqual({ requests: 0 })
    })
  })

  describe('slow store', () => {
    const jitterMs = 100

    it('a permit that arrives too late is returned and requested again', async () => {
      const pod = ofRequests(3)
      const one = pod({ store: slowStore(fleet, [150]), jitterMs })
      const startMs = fleet.clock.now()
      const permit = permitOf(await fleet.until(one.acquire()))
      expect(fleet.clock.now() - startMs).toBeGreaterThanOrEqual(150)
      permit.refund()
      await one.close()
      expect(await usedOf(pod)).toEqual({ requests: 0 })
    })

    it('a late refusal is still a refusal', async () => {
      const pod = ofRequests(1)
      await take(pod())
      const one = pod({ store: slowStore(fleet, [150, 150, 150]), jitterMs })
      expect(await fleet.until(one.acquire())).toMatchObject({ allowed: false, paused: false })
    })

    it('permits that are always late reject with STORE_UNAVAILABLE', async () => {
      const one = ofRequests(9)({ store: slowStore(fleet, [150, 150, 150, 150, 150]), jitterMs })
      const outage = { code: 'STORE_UNAVAILABLE', scope: 'shared', status: 503 }
      await expect(fleet.until(one.acquire())).rejects.toMatchObject(outage)
    })
  })

  // A memory store is never unreachable.
  if (fleet.kind === 'memory') return

  describe('unreachable store', () => {
    const outage = { code: 'STORE_UNAVAILABLE', scope: 'shared', status: 503 }
    const podWithout = (pod: ReturnType<typeof ofRequests>) => {
      const store = redisStore({ url: 'redis://127.0.0.1:1' })
      onTestFinished(() => store.close())
      return pod({ store })
    }

    it('an unreachable store rejects at once with STORE_UNAVAILABLE instead of a refusal', async () => {
      const limits = [{ limit: 1, windowMs: '1h', outage: 'refuse' }] as const
      const one = podWithout(createVendor(fleet, { limits }))
      await expect(fleet.answered(one.acquire())).rejects.toMatchObject(outage)
      await expect(fleet.answered(one.acquireWithin('1h'))).rejects.toMatchObject(outage)
    })

    it('every limiter operation rejects with STORE_UNAVAILABLE while the store is unreachable', async () => {
      const one = podWithout(ofRequests(1))
      await expect(one.pauseFor('1s')).rejects.toMatchObject(outage)
      await expect(one.setLimits([{ limit: 2, windowMs: '1s' }])).rejects.toMatchObject(outage)
      await expect(one.override('requests', 2, '1s')).rejects.toMatchObject(outage)
      await expect(one.figures()).rejects.toMatchObject(outage)
    })
  })
}
