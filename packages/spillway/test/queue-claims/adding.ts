import { describe, expect } from 'vitest'
import { it } from '../concurrent-tests.js'
import type { Fleet } from '../limit-claims/fleet.js'
import { createQueueKit, LEASE_US, SECOND } from './queue-kit.js'

const dataOf = (jobs: readonly { data: string }[]) => jobs.map(({ data }) => JSON.parse(data))

export function claimAdding(fleet: Fleet): void {
  describe('job queue: adding jobs', () => {
    it('job queue hands out by priority, then in order of arrival', async () => {
      const { addMany, reserve } = createQueueKit(fleet)
      const priorities = [2, 3, 0, 2, 1, 0, 3]
      await addMany(priorities.map((priority, data) => ({ priority, data: `${data}` })))
      const { jobs, blocked } = await reserve(100)
      expect(dataOf(jobs)).toEqual([2, 5, 4, 0, 3, 1, 6])
      expect(blocked).toBe('empty')
    })

    it('a job that waited long is handed out before a new one of higher priority', async () => {
      const { addMany, reserve } = createQueueKit(fleet, { agingUs: 50_000 })
      await addMany([{ priority: 3, data: '"old"' }])
      await fleet.sleep(200)
      await addMany([{ priority: 0, data: '"new"' }])
      expect(dataOf((await reserve(2)).jobs)).toEqual(['old', 'new'])
    })

    it('tenants take turns, however many jobs each of them has', async () => {
      const { addMany, reserve } = createQueueKit(fleet)
      const many = Array.from({ length: 100 }, () => ({ tenant: 'big', data: '"big"' }))
      await addMany(many)
      await reserve(10)
      await addMany([1, 2, 3].map(() => ({ tenant: 'small', data: '"small"' })))
      const handed = dataOf((await reserve(8)).jobs)
      expect(handed.filter((each) => each === 'small')).toHaveLength(3)
      expect(handed.filter((each) => each === 'big')).toHaveLength(5)
    })

    it('a known key adds no second job until the first one is forgotten', async () => {
      const { add, reserve, finish, counts } = createQueueKit(fleet)
      const id = await add({ key: 'invoice-7' })
      expect(await add({ key: 'invoice-7' })).toBe(id)
      expect(await counts()).toMatchObject({ waiting: 1 })
      const [job] = (await reserve()).jobs
      expect(await finish(job!, {}, { resultUs: LEASE_US })).toBe('done')
      expect(await add({ key: 'invoice-7' })).toBe(id)
      await fleet.sleep(LEASE_US / 1_000 + 50)
      expect(await add({ key: 'invoice-7' })).not.toBe(id)
    })

    it('a job is kept as long as its producer said, whatever lifetime other clients use', async () => {
      const { store, ref, add, counts } = createQueueKit(fleet)
      const hasty = { ...ref, lifeUs: SECOND }
      const touch = () => store.queues.command({ ...hasty, command: { kind: 'resume' } })
      await touch()
      await add()
      await touch()
      await fleet.sleep(1_500)
      expect(await counts()).toMatchObject({ waiting: 1 })
      await touch()
      await fleet.sleep(1_500)
      expect(await counts()).toMatchObject({ waiting: 1 })
    })

    it('job queue refuses jobs beyond its size, counting delayed and active ones', async () => {
      const { add, reserve, finish } = createQueueKit(fleet)
      await add({}, 3)
      await add({ delayUs: 60 * SECOND }, 3)
      const [job] = (await reserve()).jobs
      await add({}, 3)
      expect(await add({}, 3)).toBeUndefined()
      await finish(job!)
      expect(await add({}, 3)).toBeDefined()
    })

    it('a delayed job is not handed out before its time', async () => {
      const { add, reserve, counts } = createQueueKit(fleet)
      await add({ delayUs: 60 * SECOND })
      const early = await reserve()
      expect(early).toMatchObject({ jobs: [], blocked: 'empty' })
      expect(early.waitUs).toBeGreaterThan(30 * SECOND)
      expect(early.waitUs).toBeLessThanOrEqual(60 * SECOND)
      expect(await counts()).toMatchObject({ delayed: 1, waiting: 0 })
      const startMs = fleet.clock.now()
      await add({ delayUs: 200_000 })
      let next = await reserve()
      for (; next.jobs.length === 0; next = await reserve()) {
        expect(next.waitUs).toBeLessThanOrEqual(200_000)
        await fleet.sleep(next.waitUs / 1_000 + 1)
      }
      // Redis counts whole microseconds, and its clock and ours may differ by a little.
      expect(fleet.clock.now() - startMs).toBeGreaterThan(199)
    })

    it('a job past its deadline becomes a dead letter without an attempt', async () => {
      const { addMany, reserve, dead } = createQueueKit(fleet)
      await addMany([{ deadlineUs: 100_000, data: '"late"' }, { data: '"fine"' }])
      await fleet.sleep(150)
      expect(dataOf((await reserve(2)).jobs)).toEqual(['fine'])
      expect(await dead()).toMatchObject([{ data: '"late"', attempt: 0, state: 'dead' }])
    })

    it('counts() reports jobs per state and the wait of the next one', async () => {
      const { add, addMany, reserve, counts, command } = createQueueKit(fleet)
      await addMany([{}, {}, {}])
      await add({ delayUs: 60 * SECOND })
      await fleet.sleep(100)
      await reserve()
      const known = await counts()
      expect(known).toMatchObject({ waiting: 2, delayed: 1, active: 1, done: 0, dead: 0 })
      expect(known.oldestUs).toBeGreaterThanOrEqual(99_000)
      expect(known.paused).toBe(false)
      await command({ kind: 'pause' })
      expect(await counts()).toMatchObject({ paused: true })
      expect(await reserve()).toMatchObject({ jobs: [], blocked: 'paused' })
      await command({ kind: 'resume' })
      expect((await reserve()).jobs).toHaveLength(1)
    })
  })
}
