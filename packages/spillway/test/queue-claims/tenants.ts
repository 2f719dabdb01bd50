/** Waiting jobs by tenant. */
import { describe, expect } from 'vitest'
import { it } from '../concurrent-tests.js'
import type { Fleet } from '../limit-claims/fleet.js'
import { createQueueKit } from './queue-kit.js'

const HTML = '<script>alert(1)</script>'

export function claimTenants(fleet: Fleet): void {
  const kit = () => {
    const queue = createQueueKit(fleet)
    const addFor = async (tenant: string, count: number, priority = 2): Promise<string[]> => {
      const ids: string[] = []
      while (ids.length < count) {
        const many = Array.from({ length: Math.min(200, count - ids.length) })
        ids.push(...(await queue.addMany(many.map(() => ({ tenant, priority })))))
      }
      return ids
    }
    const tenants = async (most = 8) => {
      const { tenants, waiting } = await queue.store.queues.counts({ ...queue.ref, tenants: most })
      return { ...tenants!, waiting }
    }
    return { ...queue, addFor, tenants }
  }

  /** The memory store counts as jobs come and go. */
  const isCounting = fleet.kind === 'memory'

  describe('tenants', () => {
    it('tenants are listed with their waiting jobs per priority on request', async () => {
      const { addFor, tenants, reserve, command, counts } = kit()
      await addFor('acme', 3)
      const [first] = await addFor('acme', 2, 0)
      await addFor(HTML, 4, 3)
      await addFor('', 1, 1)
      expect(await counts()).not.toHaveProperty('tenants')
      await command({ kind: 'cancel', id: first!, keepUs: 0 })
      // The remaining job of highest priority.
      expect((await reserve(1)).jobs).toMatchObject([{ tenant: 'acme', priority: 0 }])
      expect(await tenants()).toEqual({
        waiting: 8,
        exact: true,
        top: [
          { tenant: HTML, byPriority: [0, 0, 0, 4] },
          { tenant: 'acme', byPriority: [0, 0, 3, 0] },
          { tenant: '', byPriority: [0, 1, 0, 0] },
        ],
        others: 0,
      })
      expect(await tenants(1)).toMatchObject({ top: [{ tenant: HTML }], others: 2 })
    })

    it('an empty job queue lists no tenant', async () => {
      expect(await kit().tenants()).toEqual({ waiting: 0, exact: true, top: [], others: 0 })
    })

    it('tenants are counted exactly although more jobs wait than can be read at once', async () => {
      const { addFor, tenants, reserve, finish } = kit()
      await addFor('big', 2_000)
      await addFor('', 700)
      await addFor('late', 30)
      const { jobs } = await reserve(65)
      await addFor('later', 1_200)
      // Ten jobs are returned and keep their position.
      for (const job of jobs.slice(0, 10)) await finish(job, { kind: 'returned' })
      const back = (tenant: string) => jobs.slice(10).filter((job) => job.tenant === tenant).length
      expect(await tenants()).toEqual({
        waiting: 3_930 - 55,
        exact: true,
        top: [
          { tenant: 'big', byPriority: [0, 0, 2_000 - back('big'), 0] },
          { tenant: 'later', byPriority: [0, 0, 1_200, 0] },
          { tenant: '', byPriority: [0, 0, 700 - back(''), 0] },
          { tenant: 'late', byPriority: [0, 0, 30 - back('late'), 0] },
        ],
        others: 0,
      })
    })

    it('tenant counts are marked as inexact after a few jobs far back were cancelled', async () => {
      const { addFor, tenants, command } = kit()
      const ids = await addFor('some', 2_000)
      await addFor('other', 1_000)
      for (const id of ids.slice(-20, -10)) await command({ kind: 'cancel', id, keepUs: 0 })
      const { exact, top, waiting } = await tenants()
      expect(waiting).toBe(2_990)
      expect(exact).toBe(isCounting)
      // Too high by at most the number of cancelled jobs.
      expect(top).toEqual([
        { tenant: 'some', byPriority: [0, 0, isCounting ? 1_990 : 2_000, 0] },
        { tenant: 'other', byPriority: [0, 0, 1_000, 0] },
      ])
    })

    it('tenant counts are marked as estimated after many jobs were cancelled', async () => {
      const { addFor, tenants, command } = kit()
      const ids = await addFor('half', 1_200)
      await addFor('other', 600)
      const cancelled = ids.slice(-400)
      for (const id of cancelled) await command({ kind: 'cancel', id, keepUs: 0 })
      const { exact, top, waiting } = await tenants()
      expect(waiting).toBe(1_400)
      expect(exact).toBe(isCounting)
      expect(top.map(({ tenant }) => tenant)).toEqual(['half', 'other'])
      const [half = 0, other = 0] = top.map(({ byPriority }) => byPriority[2])
      expect(half + other).toBe(1_400)
      // The sampled positions are always the same, so the result is deterministic.
      expect(Math.abs(half - 800)).toBeLessThan(isCounting ? 1 : 100)
    })
  })
}
