/** How permits are asked for, waited for and given up. */
import { setImmediate as tripsBegin } from 'node:timers/promises'
import { createDeadline, runWithDeadline } from 'spillway'
import { redisStore } from 'spillway/redis'
import { describe, expect, it, onTestFinished } from 'vitest'
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

/** As the store counts: a window of 200 ms, and as much for the way to the vendor. */
const WINDOW_MS = 400
const SHORT = { windowMs: 200, jitterMs: 200 }
/** How late a busy machine may be. */
const LATE_MS = 1_000

export function claimAsking(fleet: Fleet): void {
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

  describe('acquire', () => {
    it('answers at once, however often it was refused before', async () => {
      const pod = ofRequests(1)()
      await take(pod)
      for (let times = 0; times < 5; times++) {
        expect(await fleet.answered(pod.acquire())).toMatchObject({ allowed: false })
      }
    })

    it('answers everybody at once who asks together when nothing is left', async () => {
      const pod = ofRequests(1)()
      await take(pod)
      const asked = Promise.all(Array.from({ length: 5 }, () => pod.acquire()))
      const answers = await fleet.answered(asked)
      expect(answers.filter(({ allowed }) => allowed)).toEqual([])
    })

    it('answers a thousand at once, more than a trip to the store carries', async () => {
      const pod = ofRequests(300)()
      const asked = Promise.all(Array.from({ length: 1_000 }, () => pod.acquire()))
      const answers = await fleet.answered(asked)
      expect(answers.filter(({ allowed }) => allowed)).toHaveLength(300)
    })

    it('hears at once of what another pod gave back', async () => {
      const pod = ofRequests(1)
      const [one, other] = [pod(), pod()]
      const permit = await take(one)
      expect(await other.acquire()).toMatchObject({ allowed: false })
      permit.refund()
      await one.close()
      expect(await fleet.answered(other.acquire())).toMatchObject({ allowed: true })
    })

    it('says how long it would have to wait', async () => {
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

  describe('acquireWithin', () => {
    it('waits until the store has room, and no longer', async () => {
      const pod = paced(1)
      const first = await take(pod(), tokens(1))
      const startMs = fleet.clock.now()
      const second = permitOf(await fleet.until(pod().acquireWithin('10s', tokens(1))))
      expect(grantedMs(second) - grantedMs(first)).toBeGreaterThanOrEqual(WINDOW_MS)
      expect(fleet.clock.now() - startMs).toBeLessThan((WINDOW_MS * 31) / 30 + LATE_MS)
    })

    it('says no at once when it would wait longer than it may', async () => {
      const pod = ofRequests(1)
      await take(pod())
      const answer = await fleet.answered(pod().acquireWithin('1m'))
      expect(answer).toMatchObject({ allowed: false, paused: false })
      expect((answer as { retryAfterMs: number }).retryAfterMs).toBeGreaterThan(60_000)
    })

    it('takes what is there when it may not wait, even if the store needs a moment', async () => {
      const one = ofRequests(1)({ store: slowStore(fleet, [30]) })
      expect(await fleet.until(one.acquireWithin(0))).toMatchObject({ allowed: true })
    })

    it('never waits past the deadline of the request', async () => {
      const pod = paced(1)
      await take(pod(), tokens(1))
      const waitUnder = (ms: number) =>
        runWithDeadline(createDeadline(ms, fleet.clock), () => pod().acquireWithin('1h', tokens(1)))
      expect(await fleet.answered(waitUnder(10))).toMatchObject({ allowed: false })
      expect(await fleet.until(waitUnder(20_000))).toMatchObject({ allowed: true })
    })
  })

  describe('takeUpTo', () => {
    it('takes as many as there are', async () => {
      const pod = ofRequests(5)
      const one = pod()
      expect(await fleet.answered(one.takeUpTo(3))).toHaveLength(3)
      expect(await fleet.answered(one.takeUpTo(8))).toHaveLength(2)
      expect(await passing(pod, 3)).toBe(0)
    })

    it('takes none when there is none', async () => {
      const pod = ofRequests(1)()
      await take(pod)
      expect(await fleet.answered(pod.takeUpTo(3))).toEqual([])
    })
  })

  describe('a line in one pod', () => {
    it('is served strictly in order: a small wish does not overtake a large one', async () => {
      const pod = paced(10)
      const one = pod()
      await take(one, tokens(8))
      const order: string[] = []
      const wait = (name: string, count: number) =>
        one.acquireWithin('10s', tokens(count)).then((answer) => {
          order.push(name)
          return permitOf(answer)
        })
      const waiting = Promise.all([wait('large', 9), wait('small', 1), wait('smaller', 1)])
      const [large, small] = await fleet.until(waiting)
      expect(order).toEqual(['large', 'small', 'smaller'])
      expect(grantedMs(large)).toBeLessThanOrEqual(grantedMs(small))
    })

    it('is not jumped by somebody who will not wait', async () => {
      const one = ofTokens(10)()
      await take(one, tokens(8))
      const leave = new AbortController()
      const large = one.acquireWithin('2h', { ...tokens(5), signal: leave.signal })
      large.catch(() => {})
      expect(await fleet.answered(one.acquire(tokens(1)))).toMatchObject({ allowed: false })
      leave.abort(new Error('enough'))
      await expect(large).rejects.toThrow('enough')
    })

    it('moves up at once when its head gives up', async () => {
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

    it('asks the store for nobody who has left before asking', async () => {
      const pod = ofRequests(1)
      const one = pod()
      const left = one.acquire({ signal: AbortSignal.abort(new Error('too late')) })
      await expect(left).rejects.toThrow('too late')
      expect(await usedOf(pod)).toEqual({ requests: 0 })
    })

    // The memory store answers at once: there is no meanwhile.
    if (fleet.kind === 'memory') return

    it('gives back what was granted to somebody who left meanwhile', async () => {
      const pod = ofRequests(1)
      const leave = new AbortController()
      const asked = pod().acquire({ signal: leave.signal })
      await tripsBegin()
      leave.abort(new Error('enough'))
      await expect(asked).rejects.toThrow('enough')
      await expect.poll(() => usedOf(pod)).toEqual({ requests: 0 })
    })

    it('passes what was granted to somebody who left meanwhile on to the next', async () => {
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

  describe('close', () => {
    it('turns away with CLOSED whoever waits and whoever comes later', async () => {
      const one = ofRequests(1)()
      await take(one)
      const waiting = one.acquireWithin('2h')
      waiting.catch(() => {})
      expect(await isWaiting(fleet, waiting)).toBe(true)
      await one.close()
      const closed = expect.objectContaining({ code: 'CLOSED', stage: 'vendor-limit' })
      await expect(waiting).rejects.toEqual(closed)
      await expect(one.acquire()).rejects.toEqual(closed)
      await expect(one.acquireWithin(10)).rejects.toEqual(closed)
    })

    it('waits until what permits cost is told to the store', async () => {
      const pod = ofRequests(600)
      const one = pod()
      const permits = await one.takeUpTo(600)
      for (const permit of permits) permit.refund()
      await one.close()
      expect(await usedOf(pod)).toEqual({ requests: 0 })
    })

    it('gives back what is granted while it closes', async () => {
      const pod = ofRequests(1)
      const one = pod({ store: slowStore(fleet, [300]) })
      const asked = one.acquire()
      await tripsBegin()
      const closed = fleet.until(one.close())
      await expect(asked).rejects.toMatchObject({ code: 'CLOSED' })
      await closed
      expect(await usedOf(pod)).toEqual({ requests: 0 })
    })
  })

  describe('a store that is slow', () => {
    const jitterMs = 100

    it('is asked again for a permit that came too late to be used, which goes back', async () => {
      const pod = ofRequests(3)
      const one = pod({ store: slowStore(fleet, [150]), jitterMs })
      const startMs = fleet.clock.now()
      const permit = permitOf(await fleet.until(one.acquire()))
      expect(fleet.clock.now() - startMs).toBeGreaterThanOrEqual(150)
      permit.refund()
      await one.close()
      expect(await usedOf(pod)).toEqual({ requests: 0 })
    })

    it('is told from one that refuses, however late the refusal comes', async () => {
      const pod = ofRequests(1)
      await take(pod())
      const one = pod({ store: slowStore(fleet, [150, 150, 150]), jitterMs })
      expect(await fleet.until(one.acquire())).toMatchObject({ allowed: false, paused: false })
    })

    it('is out of order when nothing comes in time', async () => {
      const one = ofRequests(9)({ store: slowStore(fleet, [150, 150, 150]), jitterMs })
      const outage = { code: 'STORE_UNAVAILABLE', scope: 'shared', status: 503 }
      await expect(fleet.until(one.acquire())).rejects.toMatchObject(outage)
    })
  })

  // A memory store is never gone.
  if (fleet.kind === 'memory') return

  describe('a store that is gone', () => {
    const outage = { code: 'STORE_UNAVAILABLE', scope: 'shared', status: 503 }
    const podWithout = (pod: ReturnType<typeof ofRequests>) => {
      const store = redisStore({ url: 'redis://127.0.0.1:1' })
      onTestFinished(() => store.close())
      return pod({ store })
    }

    it('is told from one that refuses, and at once', async () => {
      const limits = [{ limit: 1, windowMs: '1h', outage: 'closed' }] as const
      const one = podWithout(createVendor(fleet, { limits }))
      await expect(fleet.answered(one.acquire())).rejects.toMatchObject(outage)
      await expect(fleet.answered(one.acquireWithin('1h'))).rejects.toMatchObject(outage)
    })

    it('is called that whatever it was asked for', async () => {
      const one = podWithout(ofRequests(1))
      await expect(one.pauseFor('1s')).rejects.toMatchObject(outage)
      await expect(one.setLimits([{ limit: 2, windowMs: '1s' }])).rejects.toMatchObject(outage)
      await expect(one.override('requests', 2, '1s')).rejects.toMatchObject(outage)
      await expect(one.figures()).rejects.toMatchObject(outage)
    })
  })
}
