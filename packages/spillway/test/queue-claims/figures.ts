/** Events, counts per pod and for the fleet, and charging of users. */
import { createSpillway, type JobQueueOptions, onEvent, type SpillwayEvent } from 'spillway'
import { createJobQueue } from 'spillway/shared'
import { describe, expect } from 'vitest'
import type { GuardOptions } from '../../src/guard/options.js'
import { it, onTestFinished } from '../concurrent-tests.js'
import type { Fleet } from '../limit-claims/fleet.js'

let guards = 0

function createPod(fleet: Fleet, guard: GuardOptions, settings: Partial<JobQueueOptions> = {}) {
  const { clock } = fleet
  const name = `expected-${fleet.kind}-${++guards}`
  const store = fleet.store()
  const spillway = createSpillway({ store, clock, pod: 'p' })
  spillway.guard(name, guard)
  onTestFinished(() => fleet.until(spillway.close({ graceMs: 0 })))
  const queue = spillway.jobQueue<string, string>(name, { guard: name, keep: 0, ...settings })
  const events: SpillwayEvent[] = []
  onTestFinished(
    onEvent((event) => {
      if (event.name === name) events.push(event)
    }),
  )
  return { spillway, queue, events, name, store }
}

async function eventually(fleet: Fleet, isSo: () => boolean): Promise<void> {
  for (let tries = 0; !isSo(); tries++) {
    // Only ends a test that hangs.
    expect(tries).toBeLessThan(5_000)
    await fleet.sleep(10)
  }
}

export function claimFigures(fleet: Fleet): void {
  describe('job queue figures', () => {
    it('every job outcome appears in events, pod counts and fleet figures', async () => {
      const settings = { attempts: 2, baseMs: 1, maxMs: 2, maxSize: 4 }
      const { spillway, queue, events, name } = createPod(fleet, {}, settings)
      const jobs = ['done', 'retried', 'dead'].map((data) => ({ data }))
      await fleet.until(queue.addMany(jobs))
      await fleet.until(queue.add('low', { priority: 'low', delayMs: '1h' }))
      await expect(fleet.until(queue.add('too many'))).rejects.toMatchObject({ code: 'QUEUE_FULL' })
      const before = await fleet.until(spillway.fleet())
      expect(before.jobQueues).toEqual([
        expect.objectContaining({
          name,
          waiting: 3,
          delayed: 1,
          byPriority: { critical: 0, high: 0, normal: 3, low: 0 },
        }),
      ])
      const worker = queue.work(async ({ data, attempt }) => {
        if (data === 'retried' && attempt === 1) throw new Error('for now')
        if (data === 'dead') throw Object.assign(new Error('for good'), { status: 400 })
        return data
      })
      await eventually(fleet, () => worker.snapshot().done === 2 && worker.snapshot().dead === 1)
      await fleet.until(worker.close())
      await fleet.until(queue.pause())
      const types = events.map(({ type }) => type)
      const count = (type: string) => types.filter((each) => each === type).length
      expect(
        [
          'job.added',
          'job-queue.full',
          'job.done',
          'job.retried',
          'job.dead',
          'job-queue.paused',
        ].map(count),
      ).toEqual([4, 1, 2, 1, 1, 1])
      expect(events.find(({ type }) => type === 'job.dead')).toMatchObject({
        name,
        id: expect.any(String),
        error: 'Error: for good',
      })
      // Counts of a closed worker are kept.
      const expected = {
        name,
        workers: 0,
        added: 4,
        refused: 1,
        taken: 4,
        done: 2,
        retried: 1,
        dead: 1,
      }
      expect(spillway.snapshot().jobQueues).toEqual([expect.objectContaining(expected)])
    })

    it('adding a job charges its user, except for known keys and a full queue', async () => {
      const userLimits = [{ per: 'user', limit: 2, windowMs: '1h' }] as const
      const { spillway, queue, name } = createPod(fleet, { userLimits }, { maxSize: 2 })
      const as = { user: `ann-${name}` }
      const add = (key: string) => fleet.until(queue.add('x', { key, as }))
      expect(await add('one')).toMatchObject({ fresh: true })
      expect(await add('one')).toMatchObject({ fresh: false })
      await fleet.until(queue.add('without a user'))
      await expect(add('no room')).rejects.toMatchObject({ code: 'QUEUE_FULL' })
      await fleet.sleep(50)
      // One of two requests is left, and a call uses it.
      await fleet.until(spillway.guard(name).run(() => 'called', as))
      await expect(add('two')).rejects.toMatchObject({ code: 'USER_LIMITED', stage: 'user-limit' })
    })

    it('a job that failed as final is not retried', async () => {
      const { queue } = createPod(fleet, {}, { attempts: 3, baseMs: 1, maxMs: 2 })
      const tried: string[] = []
      const worker = queue.work(async (job) => {
        tried.push(job.data)
        job.final = job.data === 'once'
        throw new Error('no')
      })
      await fleet.until(queue.addMany([{ data: 'once' }, { data: 'thrice' }]))
      await eventually(fleet, () => worker.snapshot().dead === 2)
      expect(tried.sort()).toEqual(['once', 'thrice', 'thrice', 'thrice'])
    })

    it('a job queue can be used without being one of the pods', async () => {
      const { queue, name, store, spillway } = createPod(fleet, {})
      const distant = createJobQueue<string>({ store, name, guard: name })
      const { id } = await fleet.until(distant.add('from afar'))
      expect(await fleet.until(queue.job(id))).toMatchObject({ data: 'from afar' })
      expect(await fleet.until(distant.counts())).toMatchObject({ waiting: 1 })
      await fleet.until(queue.close())
      // A closed queue frees its name.
      expect(spillway.jobQueue(name, { guard: name })).not.toBe(queue)
    })
  })
}
