import { createSpillway, type JobQueueOptions, JobStopped } from 'spillway'
import { sleep } from 'spillway/testing'
import { describe, expect } from 'vitest'
import type { GuardOptions } from '../../src/guard/options.js'
import { it, onTestFinished } from '../concurrent-tests.js'
import type { Fleet } from '../limit-claims/fleet.js'

let pods = 0

function createPod(
  fleet: Fleet,
  name: string,
  guard: GuardOptions = {},
  settings: Partial<JobQueueOptions> = {},
) {
  const { clock } = fleet
  const spillway = createSpillway({ store: fleet.store(), clock, pod: `p${++pods}` })
  spillway.guard(name, guard)
  onTestFinished(() => fleet.until(spillway.close({ graceMs: 0 })))
  const queue = spillway.jobQueue<number, unknown>('q', { guard: name, ...settings })
  return { spillway, queue }
}

async function eventually(fleet: Fleet, done: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await done()); tries++) {
    // Only ends a test that hangs.
    expect(tries).toBeLessThan(5_000)
    await fleet.sleep(10)
  }
}

export function claimWorkers(fleet: Fleet): void {
  const { clock } = fleet
  let guards = 0
  const nameOf = () => `worked-${fleet.kind}-${++guards}`

  describe('workers', () => {
    it('workers run every job once and keep its result', async () => {
      const { queue } = createPod(fleet, nameOf())
      const ran: number[] = []
      const worker = queue.work(
        async ({ data }) => {
          ran.push(data)
          await sleep(clock, 5)
          return { twice: 2 * data }
        },
        { concurrency: 7 },
      )
      const jobs = Array.from({ length: 100 }, (_, data) => ({ data }))
      const added = await fleet.until(queue.addMany(jobs))
      await eventually(fleet, () => worker.snapshot().done === 100)
      expect(ran.sort((a, b) => a - b)).toEqual(jobs.map(({ data }) => data))
      const last = await fleet.until(queue.job(added[99]!.id))
      expect(last).toMatchObject({ state: 'done', result: { twice: 198 }, attempt: 1 })
    })

    it('each new job wakes one idle worker, and idle workers do not poll', async () => {
      const name = nameOf()
      const fleetOf = Array.from({ length: 3 }, () => createPod(fleet, name))
      const ran: number[] = []
      const workers = fleetOf.map(({ queue }) =>
        queue.work(async ({ data }) => void ran.push(data), { concurrency: 2 }),
      )
      // At the start, and again once a subscription can wake them.
      const atFirst = fleet.kind === 'memory' ? 1 : 2
      await eventually(fleet, () => workers.every((worker) => worker.snapshot().polls >= atFirst))
      await fleet.sleep(100)
      const before = workers.map((worker) => worker.snapshot())
      await fleet.sleep(500)
      expect(workers.map((worker) => worker.snapshot().polls)).toEqual(
        before.map(({ polls }) => polls),
      )
      await fleet.until(fleetOf[0]!.queue.add(1))
      await eventually(fleet, () => ran.length === 1)
      await fleet.sleep(200)
      const called = workers.map(
        (worker, index) => worker.snapshot().wakeups - before[index]!.wakeups,
      )
      expect(called.reduce((sum, each) => sum + each, 0)).toBe(1)
    })

    it('workers renew the lease of a long job and report its progress', async () => {
      const { queue } = createPod(fleet, nameOf(), {}, { leaseMs: 1_000 })
      let runs = 0
      queue.work(async (job) => {
        runs++
        job.progress({ page: 3 })
        await sleep(clock, 2_500)
        return 'slow'
      })
      const { id } = await fleet.until(queue.add(1))
      await fleet.sleep(1_500)
      expect(await fleet.until(queue.job(id))).toMatchObject({
        state: 'active',
        progress: { page: 3 },
      })
      await eventually(fleet, async () => (await fleet.until(queue.job(id)))?.state === 'done')
      expect(runs).toBe(1)
    })

    it('workers stop a cancelled job', async () => {
      const { queue } = createPod(fleet, nameOf(), {}, { leaseMs: 300 })
      const reasons: unknown[] = []
      queue.work(async (_, { signal }) => {
        await sleep(clock, 60_000, signal).catch((reason) => reasons.push(reason))
        throw new Error('stopped')
      })
      const { id } = await fleet.until(queue.add(1))
      await fleet.sleep(50)
      expect(await fleet.until(queue.cancel(id))).toBe(true)
      await eventually(fleet, () => reasons.length === 1)
      expect(reasons[0]).toBeInstanceOf(JobStopped)
      await eventually(fleet, async () => (await fleet.until(queue.job(id)))?.state === 'cancelled')
    })

    it('workers that cannot renew a lease stop its job and report no result', async () => {
      const name = nameOf()
      const store = fleet.store()
      const extend = () => Promise.reject(new Error('gone'))
      let cut = false
      const reserve: typeof store.queues.reserve = (request) =>
        cut ? Promise.reject(new Error('gone')) : store.queues.reserve(request)
      const cutOff = { ...store, queues: { ...store.queues, extend, reserve } }
      const spillway = createSpillway({ store: cutOff, clock, pod: 'cut-off' })
      spillway.guard(name, {})
      onTestFinished(() => fleet.until(spillway.close({ graceMs: 0 })))
      const settings = { guard: name, leaseMs: 300 }
      const runs: { by: string; stopped?: unknown }[] = []
      const worker = spillway.jobQueue('q', settings).work(async (_, { signal }) => {
        const run: (typeof runs)[number] = { by: 'cut-off' }
        runs.push(run)
        await sleep(clock, 60_000, signal).catch((reason) => {
          run.stopped = reason
        })
        return 'too late'
      })
      const { queue } = createPod(fleet, name, {}, settings)
      const { id } = await fleet.until(queue.add(1))
      await eventually(fleet, () => runs.length === 1)
      cut = true
      queue.work(async () => {
        runs.push({ by: 'other' })
        return 'in time'
      })
      await eventually(fleet, async () => (await fleet.until(queue.job(id)))?.state === 'done')
      expect(await fleet.until(queue.job(id))).toMatchObject({ result: 'in time', attempt: 2 })
      await eventually(fleet, () => runs[0]?.stopped !== undefined)
      expect(runs[0]?.stopped).toMatchObject({ why: 'lost' })
      expect(worker.snapshot()).toMatchObject({ done: 0, lost: 1 })
    })

    it('workers retry failed jobs and give up those that cannot succeed', async () => {
      const { queue } = createPod(fleet, nameOf(), {}, { baseMs: 10, maxMs: 20, attempts: 3 })
      let tries = 0
      queue.work(async ({ data }) => {
        tries++
        if (data === 1 && tries < 3) throw new Error('not yet')
        if (data === 2) throw Object.assign(new Error('bad request'), { status: 400 })
        return tries
      })
      const first = await fleet.until(queue.add(1))
      await eventually(
        fleet,
        async () => (await fleet.until(queue.job(first.id)))?.state === 'done',
      )
      expect(await fleet.until(queue.job(first.id))).toMatchObject({ attempt: 3, result: 3 })
      const second = await fleet.until(queue.add(2))
      await eventually(
        fleet,
        async () => (await fleet.until(queue.job(second.id)))?.state === 'dead',
      )
      const [letter] = await fleet.until(queue.dead())
      expect(letter).toMatchObject({ attempt: 1, error: 'Error: bad request' })
      expect(await fleet.until(queue.drop())).toBe(1)
    })

    it('a closing worker lets running jobs finish and returns the rest without an attempt', async () => {
      const name = nameOf()
      const { queue } = createPod(fleet, name)
      const LONG_MS = 600_000
      const running = new Set<number>()
      let finish = () => {}
      const finished = new Promise<void>((resolve) => {
        finish = resolve
      })
      const worker = queue.work(
        async ({ data }, { signal }) => {
          running.add(data)
          await (data === LONG_MS ? sleep(clock, data, signal) : finished)
          return 'finished'
        },
        { concurrency: 2 },
      )
      const quick = await fleet.until(queue.add(1))
      const slow = await fleet.until(queue.add(LONG_MS))
      await eventually(fleet, () => running.size === 2)
      const waiting = await fleet.until(queue.add(2))
      const closed = worker.close({ graceMs: 2_500 })
      finish()
      await fleet.until(closed)
      expect(running.has(2)).toBe(false)
      expect(await fleet.until(queue.job(quick.id))).toMatchObject({ result: 'finished' })
      expect(await fleet.until(queue.job(slow.id))).toMatchObject({ state: 'waiting', attempt: 0 })
      expect(await fleet.until(queue.job(waiting.id))).toMatchObject({ state: 'waiting' })
    })

    it('workers take a delayed job when it is due without polling', async () => {
      const name = nameOf()
      const { queue } = createPod(fleet, name)
      const other = createPod(fleet, name)
      const startedMs: number[] = []
      const handler = async () => void startedMs.push(clock.now())
      const workers = [queue.work(handler), other.queue.work(handler)]
      const polls = () => workers.reduce((sum, worker) => sum + worker.snapshot().polls, 0)
      await fleet.sleep(100)
      const before = polls()
      const dueMs = clock.now() + 1_000
      await fleet.until(queue.add(1, { delayMs: 1_000 }))
      await eventually(fleet, () => startedMs.length === 1)
      expect(startedMs[0]).toBeGreaterThanOrEqual(dueMs - 1)
      if (fleet.kind === 'memory') expect(startedMs[0]).toBeLessThan(dueMs + 150)
      // One that learns of the job, one when it is due, one after it, and one late subscription each.
      expect(polls() - before).toBeLessThanOrEqual(5)
    })

    it('add() rejects with QUEUE_FULL when the job queue is full', async () => {
      const { queue } = createPod(fleet, nameOf(), {}, { maxSize: 2 })
      await fleet.until(queue.addMany([{ data: 1 }, { data: 2 }]))
      await expect(fleet.until(queue.add(3))).rejects.toMatchObject({
        code: 'QUEUE_FULL',
        status: 503,
      })
    })
  })
}
