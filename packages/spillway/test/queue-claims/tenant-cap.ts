/** One tenant cannot fill a job queue. */
import { createSpillway, QueueFullError } from 'spillway'
import { describe, expect } from 'vitest'
import { it, onTestFinished } from '../concurrent-tests.js'
import type { Fleet } from '../limit-claims/fleet.js'
import { createQueueKit, LEASE_US, SECOND } from './queue-kit.js'

export function claimTenantCap(fleet: Fleet): void {
  const kit = (given = {}) => {
    const queue = createQueueKit(fleet, given)
    const addFor = async (tenant: string, count = 1, own: object = {}) => {
      const job = {
        data: '1',
        priority: 2,
        delayUs: 0,
        deadlineUs: 0,
        key: '',
        cost: {},
        attempts: 1,
      }
      const jobs = Array.from({ length: count }, () => ({ ...job, tenant, ...own }))
      return queue.store.queues.add({ ...queue.ref, jobs, maxSize: 100, maxPerTenant: 3 })
    }
    /** Number of jobs of this tenant that the queue still accepts. */
    const room = async (tenant: string) => (await addFor(tenant, 10)).jobs.length
    return { ...queue, addFor, room }
  }

  describe('maxPerTenant', () => {
    it('maxPerTenant refuses a tenant with that number of open jobs, and no other tenant', async () => {
      const { addFor } = kit()
      const reply = await addFor('greedy', 5)
      expect(reply).toMatchObject({ size: 3, tenantSize: 3 })
      expect(reply.jobs).toHaveLength(3)
      expect((await addFor('other')).jobs).toHaveLength(1)
      // Jobs without a tenant share maxSize only.
      const anonymous = await addFor('', 50)
      expect(anonymous.jobs).toHaveLength(50)
      expect(anonymous).not.toHaveProperty('tenantSize')
    })

    it('maxPerTenant counts waiting, delayed and running jobs until they end in any way', async () => {
      const { addFor, room, reserve, finish, command } = kit()
      const [waiting] = (await addFor('t')).jobs
      const [delayed] = (await addFor('t', 1, { delayUs: SECOND * 60 })).jobs
      await addFor('t', 1, { priority: 0 })
      const [running] = (await reserve()).jobs
      expect(await room('t')).toBe(0)
      await command({ kind: 'cancel', id: waiting!.id, keepUs: 0 })
      await command({ kind: 'cancel', id: delayed!.id, keepUs: 60 * SECOND })
      await finish(running!)
      expect(await room('t')).toBe(3)
    })

    it('maxPerTenant does not count dead letters until they are replayed, and then once', async () => {
      const { addFor, room, reserve, finish, command } = kit()
      const [first] = (await addFor('t')).jobs
      const [job] = (await reserve()).jobs
      expect(await finish(job!, { kind: 'dead' })).toBe('dead')
      expect(await finish(job!, { kind: 'dead' })).toBe('dead')
      await command({ kind: 'replay', id: first!.id })
      expect(await room('t')).toBe(2)
      const { jobs } = await reserve(3)
      for (const each of jobs) await finish(each, { kind: 'dead' })
      for (const each of jobs) await command({ kind: 'drop', id: each.id })
      expect(await room('t')).toBe(3)
    })

    it('maxPerTenant does not count jobs whose deadline has passed or whose lease has ended', async () => {
      const { addFor, room, reserve } = kit({ leaseUs: LEASE_US })
      await addFor('t', 1, { priority: 0 })
      await reserve()
      await addFor('t', 2, { deadlineUs: LEASE_US })
      expect(await room('t')).toBe(0)
      await fleet.sleep(LEASE_US / 1_000 + 20)
      expect(await reserve(5)).toMatchObject({ jobs: [], blocked: 'empty' })
      expect(await room('t')).toBe(3)
    })

    it('maxPerTenant is a tenth of maxSize by default, and its error names the numbers and added jobs', async () => {
      const name = `capped-${fleet.kind}`
      const spillway = createSpillway({ store: fleet.store(), clock: fleet.clock, pod: 'p' })
      onTestFinished(() => fleet.until(spillway.close({ graceMs: 0 })))
      spillway.guard(name, {})
      const queue = spillway.jobQueue<number>('q', { guard: name, maxSize: 20 })
      const jobs = [1, 2, 3, 4].map((data) => ({ data, tenant: 'acme' }))
      const error = await fleet.until(queue.addMany(jobs)).catch((each: unknown) => each)
      expect(error).toBeInstanceOf(QueueFullError)
      expect(error).toMatchObject({
        code: 'QUEUE_FULL',
        details: { tenant: 'acme', tenantSize: 2, maxPerTenant: 2, size: 2, maxSize: 20, added: 2 },
        message: expect.stringMatching(/tenant acme: 2 of its jobs .* maxPerTenant is 2/),
      })
      const ids = (error as QueueFullError).added.map(({ id }) => id)
      expect(ids).toHaveLength(2)
      expect(await fleet.until(queue.job(ids[1]!))).toMatchObject({ data: 2, tenant: 'acme' })
      expect(queue.snapshot()).toMatchObject({ added: 2, refused: 1 })
      expect(await fleet.until(queue.add(5))).toMatchObject({ fresh: true })
    })
  })
}
