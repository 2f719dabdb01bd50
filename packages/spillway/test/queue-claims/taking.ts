import { describe, expect } from 'vitest'
import type { BreakerSpec } from '../../src/store/breaker-spec.js'
import { it } from '../concurrent-tests.js'
import type { Fleet } from '../limit-claims/fleet.js'
import { createQueueKit, limitOf, SECOND } from './queue-kit.js'

const BREAKER: BreakerSpec = {
  consecutive: 3,
  failureRate: 0,
  slowRate: 0,
  windowUs: 60 * SECOND,
  windowCalls: 0,
  minimumCalls: 1,
  openUs: 200_000,
  openFactor: 1,
  maxOpenUs: 60 * SECOND,
  probes: 2,
  successes: 1,
  probeLeaseUs: 60 * SECOND,
  quorum: 1,
}

export function claimTaking(fleet: Fleet): void {
  describe('taking a job', () => {
    const take = (guard: string, ...limits: ReturnType<typeof limitOf>[]) => ({
      guard,
      lane: 'a',
      limits,
      version: 0,
      units: limits.map(({ id }) => id),
    })

    it('a job is taken together with its permits of all limits, or not at all', async () => {
      const { addMany, reserve, store, ref, counts } = createQueueKit(fleet)
      const limits = [limitOf({ limit: 5 }), limitOf({ id: 'tokens', limit: 100 })]
      const about = take(ref.guard, ...limits)
      await addMany([{ cost: { tokens: 60 } }, { cost: { tokens: 60 } }, {}])
      const first = await reserve(10, { take: about })
      expect(first.jobs).toHaveLength(1)
      expect(first).toMatchObject({ blocked: 'limited', take: { granted: 1 } })
      expect(first.waitUs).toBeGreaterThan(0)
      expect(first.jobs[0]?.costs).toEqual([1, 60])
      expect(await counts()).toMatchObject({ active: 1, waiting: 2 })
      const figures = await store.limits.figures(about)
      expect(figures.limits.map(({ used }) => used)).toEqual([1, 60])
    })

    it('jobs and calls share the limits', async () => {
      const { addMany, reserve, store, ref } = createQueueKit(fleet)
      const about = take(ref.guard, limitOf({ limit: 10 }))
      await store.limits.take({ ...about, costs: Array.from({ length: 7 }, () => [1]) })
      await addMany(Array.from({ length: 10 }, () => ({})))
      expect((await reserve(10, { take: about })).jobs).toHaveLength(3)
      const more = await store.limits.take({ ...about, costs: [[1]] })
      expect(more.granted).toBe(0)
    })

    it('jobs leave calls their share of a limit and spread the rest evenly', async () => {
      const { addMany, reserve, store, ref } = createQueueKit(fleet)
      const bucket = limitOf({ algorithm: 'token-bucket', limit: 100 })
      const about = take(ref.guard, bucket)
      await addMany(Array.from({ length: 100 }, () => ({})))
      expect((await reserve(100, { take: about, keep: 0.25 })).jobs).toHaveLength(75)
      const costs = Array.from({ length: 30 }, () => [1])
      expect((await store.limits.take({ ...about, costs })).granted).toBe(25)
      const window = take(ref.guard, limitOf({ id: 'evenly', limit: 310, slices: 30 }))
      const few = await reserve(100, { take: { ...window, units: ['requests'] }, keep: 0.1 })
      expect(few.jobs).toHaveLength(9)
    })

    it('no job is taken while the lane is paused', async () => {
      const { add, reserve, store, ref } = createQueueKit(fleet)
      const about = take(ref.guard, limitOf({}))
      const word = { grantedUs: 0, throttled: true, pauseUs: 5 * SECOND, left: [] }
      await store.limits.feedback({ ...about, ...word, basePauseUs: 1, maxPauseUs: 60 * SECOND })
      await add()
      expect(await reserve(1, { take: about })).toMatchObject({ jobs: [], blocked: 'vendor' })
    })

    it('an open breaker hands out no job, and a half-open one as many as may probe', async () => {
      const { addMany, reserve, store, ref, counts } = createQueueKit(fleet)
      const breaker = { guard: ref.guard, lane: 'a', spec: BREAKER }
      await addMany(Array.from({ length: 10 }, () => ({})))
      await store.breakers.command({ ...breaker, command: { kind: 'trip' } })
      const open = await reserve(5, { breaker, probes: ['p1', 'p2'] })
      expect(open).toMatchObject({ jobs: [], blocked: 'breaker' })
      expect(open.waitUs).toBeGreaterThan(0)
      expect(open.waitUs).toBeLessThanOrEqual(BREAKER.openUs)
      await fleet.sleep(open.waitUs / 1_000 + 1)
      const probing = await reserve(5, { breaker, probes: ['p3', 'p4'] })
      expect(probing).toMatchObject({ probing: true, view: { kind: 2, probes: 2 } })
      expect(probing.jobs.map(({ attempt }) => attempt)).toEqual([1, 1])
      expect(await reserve(5, { breaker, probes: ['p5'] })).toMatchObject({ jobs: [] })
      const { generation } = probing.view!
      const report = {
        pod: 'p',
        sequence: 1,
        generation,
        outcomes: [],
        probes: [['p3', 0]] as const,
      }
      await store.breakers.report({ ...breaker, ...report })
      const closed = await reserve(5, { breaker, probes: ['p6'] })
      expect(closed.probing).toBe(false)
      expect(closed.jobs).toHaveLength(5)
      expect(await counts()).toMatchObject({ active: 7, waiting: 3 })
    })

    it('a failure that the breaker already knew does not count as an attempt of the job', async () => {
      const { addMany, reserve, store, ref, finish, job } = createQueueKit(fleet)
      const breaker = { guard: ref.guard, lane: 'a', spec: BREAKER }
      await addMany([{}, {}])
      const { jobs, view } = await reserve(2, { breaker, probes: [] })
      const { generation } = view!
      const [first, second] = jobs
      await finish(first!, { kind: 'failed', generation }, { breaker })
      await store.breakers.command({ ...breaker, command: { kind: 'trip' } })
      await finish(second!, { kind: 'failed', generation }, { breaker })
      expect(await job(first!.id)).toMatchObject({ attempt: 1, state: 'waiting' })
      expect(await job(second!.id)).toMatchObject({ attempt: 0, state: 'waiting' })
    })
  })
}
