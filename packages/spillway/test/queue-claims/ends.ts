import { describe, expect } from 'vitest'
import { it } from '../concurrent-tests.js'
import type { Fleet } from '../limit-claims/fleet.js'
import { createQueueKit, LEASE_US, SECOND } from './queue-kit.js'

const LEASE_MS = LEASE_US / 1_000

export function claimEnds(fleet: Fleet): void {
  describe('job lease', () => {
    it('an expired lease gives the job to another worker and locks out the first one', async () => {
      const { add, reserve, finish, extend, counts } = createQueueKit(fleet, { leaseUs: LEASE_US })
      await add()
      const [first] = (await reserve()).jobs
      await fleet.sleep(LEASE_MS + 20)
      const [second] = (await reserve()).jobs
      expect(second).toMatchObject({ id: first!.id, attempt: 2 })
      expect(await extend(first!)).toBe('lost')
      expect(await finish(first!, { text: '"stale"' })).toBe('stale')
      expect(await counts()).toMatchObject({ active: 1, expiredLeases: 1 })
      expect(await finish(second!, { text: '"mine"' })).toBe('done')
    })

    it('a renewed lease does not expire', async () => {
      const { add, reserve, extend, finish } = createQueueKit(fleet, { leaseUs: LEASE_US })
      await add()
      const [job] = (await reserve()).jobs
      expect(await extend(job!, '0.5')).toBe('kept')
      await fleet.sleep(LEASE_MS + 20)
      expect((await reserve()).jobs).toEqual([])
      expect(await finish(job!)).toBe('done')
    })

    it('a job whose lease expires too often becomes a dead letter', async () => {
      const { add, reserve, dead } = createQueueKit(fleet, { leaseUs: LEASE_US })
      await add({ attempts: 1 })
      await reserve()
      await fleet.sleep(LEASE_MS + 20)
      expect(await reserve()).toMatchObject({ jobs: [], blocked: 'empty' })
      expect(await dead()).toMatchObject([
        { text: 'the lease expired before the worker reported a result' },
      ])
    })
  })

  describe('job lifecycle', () => {
    it('a finished job keeps its result for a while', async () => {
      const { add, reserve, finish, job } = createQueueKit(fleet)
      const id = (await add())!
      const [taken] = (await reserve()).jobs
      await finish(taken!, { text: '{"answer":42}' }, { resultUs: LEASE_US })
      expect(await job(id)).toMatchObject({ state: 'done', text: '{"answer":42}' })
      await fleet.sleep(LEASE_MS + 20)
      await reserve()
      expect(await job(id)).toBeUndefined()
    })

    it('finishing a job twice counts once', async () => {
      const { add, reserve, finish, counts } = createQueueKit(fleet)
      await add()
      const [taken] = (await reserve()).jobs
      expect(await finish(taken!)).toBe('done')
      expect(await finish(taken!, { kind: 'failed' })).toBe('done')
      expect(await counts()).toMatchObject({ done: 1, waiting: 0 })
    })

    it('a failed job is retried after its delay in its old position until its attempts are used up', async () => {
      const { addMany, reserve, finish, dead } = createQueueKit(fleet)
      const [id] = await addMany([{ attempts: 2 }, {}])
      const [first] = (await reserve()).jobs
      expect(await finish(first!, { kind: 'failed', text: 'boom', delayUs: 100_000 })).toBe('again')
      await fleet.sleep(150)
      const [second] = (await reserve()).jobs
      expect(second).toMatchObject({ id, attempt: 2 })
      expect(await finish(second!, { kind: 'failed', text: 'boom again' })).toBe('dead')
      expect(await dead()).toMatchObject([{ id, text: 'boom again', attempt: 2 }])
    })

    it('a released job costs no attempt', async () => {
      const { add, reserve, finish } = createQueueKit(fleet)
      await add({ attempts: 1 })
      for (let round = 0; round < 3; round++) {
        const [job] = (await reserve()).jobs
        expect(job).toMatchObject({ attempt: 1, turn: round + 1 })
        expect(await finish(job!, { kind: 'released' })).toBe('again')
      }
    })

    it('dead letters can be listed, retried and dropped', async () => {
      const { addMany, reserve, finish, dead, command, counts } = createQueueKit(fleet)
      await addMany([{ data: '1' }, { data: '2' }])
      for (const job of (await reserve(2)).jobs) await finish(job, { kind: 'dead', text: 'no' })
      const letters = await dead()
      expect(letters.map(({ data }) => data)).toEqual(['1', '2'])
      expect(await command({ kind: 'replay', id: letters[0]!.id })).toBe(true)
      expect(await command({ kind: 'drop', id: letters[1]!.id })).toBe(true)
      expect(await command({ kind: 'drop', id: letters[1]!.id })).toBe(false)
      expect(await counts()).toMatchObject({ waiting: 1, dead: 0, done: 0 })
      expect((await reserve()).jobs).toMatchObject([{ data: '1', attempt: 1 }])
    })

    it('a cancelled job does not run, and a running one is notified', async () => {
      const { addMany, reserve, command, job, extend, finish } = createQueueKit(fleet)
      const [running, waiting, delayed] = await addMany([{}, {}, { delayUs: 60 * SECOND }])
      const [taken] = (await reserve()).jobs
      const keepUs = 60 * SECOND
      for (const id of [running!, waiting!, delayed!]) {
        expect(await command({ kind: 'cancel', id, keepUs })).toBe(true)
      }
      expect(await job(waiting!)).toMatchObject({ state: 'cancelled' })
      expect(await job(delayed!)).toMatchObject({ state: 'cancelled' })
      expect(await extend(taken!)).toBe('cancelled')
      expect(await finish(taken!, { kind: 'failed' })).toBe('cancelled')
      expect(await reserve()).toMatchObject({ jobs: [], blocked: 'empty' })
      expect(await command({ kind: 'cancel', id: waiting!, keepUs })).toBe(false)
    })
  })
}
