/** Jobs that are throttled, refused or open the breaker wait, let others run and end. */
import { createSpillway, type JobQueueOptions } from 'spillway'
import { describe, expect } from 'vitest'
import type { GuardOptions } from '../../src/guard/options.js'
import { it, onTestFinished } from '../concurrent-tests.js'
import type { Fleet } from '../limit-claims/fleet.js'
import { createQueueKit } from './queue-kit.js'

let guards = 0

function createPod(fleet: Fleet, guard: GuardOptions, settings: Partial<JobQueueOptions> = {}) {
  const name = `throttled-${fleet.kind}-${++guards}`
  const spillway = createSpillway({ store: fleet.store(), clock: fleet.clock, pod: name })
  onTestFinished(() => fleet.until(spillway.close({ graceMs: 0 })))
  const own = spillway.guard(name, guard)
  const queue = spillway.jobQueue<string, unknown>('q', { guard: name, keep: 0, ...settings })
  return { guard: own, queue }
}

const throttle = (headers = {}) =>
  Object.assign(new Error('too many requests'), { status: 429, headers })

async function eventually(fleet: Fleet, done: () => boolean): Promise<void> {
  for (let tries = 0; !done(); tries++) {
    // Only ends a test that hangs.
    expect(tries).toBeLessThan(5_000)
    await fleet.sleep(10)
  }
}

export function claimThrottled(fleet: Fleet): void {
  const { clock } = fleet

  describe('a job that always gets 429', () => {
    it.each([
      ['without limits', {}],
      ['with limits', { limits: [{ limit: 10_000, windowMs: '1h' as const }] }],
    ])(
      'a job that always gets 429 on a guard %s waits basePauseMs, then ever longer, and becomes a dead letter',
      async (_, options) => {
        const settings = { uncountedTurns: 3, attempts: 2 }
        const { queue } = createPod(fleet, { ...options, basePauseMs: 20 }, settings)
        const startsMs: number[] = []
        const worker = queue.work(async () => {
          startsMs.push(clock.now())
          throw throttle()
        })
        const { id } = await fleet.until(queue.add('too large'))
        await eventually(fleet, () => worker.snapshot().dead === 1)
        expect(startsMs).toHaveLength(5)
        for (const [turn, atMs] of startsMs.slice(1).entries()) {
          expect(atMs - startsMs[turn]!).toBeGreaterThanOrEqual(20 * 2 ** turn - 1)
        }
        expect(await fleet.until(queue.job(id))).toMatchObject({ state: 'dead', attempt: 2 })
      },
    )

    it('a job that always gets 429 lets other jobs of its priority and calls of its guard through', async () => {
      const limits = [{ limit: 10_000, windowMs: '1h' as const }]
      const { guard, queue } = createPod(fleet, {
        limits,
        basePauseMs: 20,
        queue: { size: 100, timeoutMs: '2s' },
      })
      let done = 0
      const worker = queue.work(
        async ({ data }) => {
          if (data === 'poison') throw throttle()
          done++
        },
        { concurrency: 1 },
      )
      const jobs = Array.from({ length: 21 }, (_, at) => ({ data: at === 0 ? 'poison' : 'good' }))
      await fleet.until(queue.addMany(jobs))
      await eventually(fleet, () => done === 20)
      // The good jobs did not wait until the failing one became a dead letter.
      expect(worker.snapshot().dead).toBe(0)
      for (let call = 0; call < 20; call++) {
        expect(await fleet.until(guard.run(() => 'served'))).toBe('served')
      }
    })

    it('a job that always gets Retry-After is limited to uncountedTurns and its attempts', async () => {
      const { queue } = createPod(fleet, { basePauseMs: 1 }, { uncountedTurns: 2, attempts: 1 })
      let turns = 0
      const worker = queue.work(async () => {
        turns++
        throw throttle({ 'retry-after-ms': '5' })
      })
      await fleet.until(queue.add('x'))
      await eventually(fleet, () => worker.snapshot().dead === 1)
      expect(turns).toBe(3)
    })
  })

  describe('a call that gets 429 on a guard without limits', () => {
    it('a call that gets 429 on a guard without limits pauses the jobs of its lane in this pod', async () => {
      const { guard, queue } = createPod(fleet, { basePauseMs: 300 })
      const pausedMs = clock.now()
      await fleet.until(
        guard
          .run(async () => {
            throw throttle()
          })
          .catch(() => {}),
      )
      const startsMs: number[] = []
      queue.work(async () => void startsMs.push(clock.now()))
      await fleet.until(queue.add('x'))
      await eventually(fleet, () => startsMs.length === 1)
      expect(startsMs[0]! - pausedMs).toBeGreaterThanOrEqual(299)
    })
  })

  describe('a released job', () => {
    it('a released job is queued behind the others of its priority, and a returned one is not', async () => {
      const { addMany, reserve, finish } = createQueueKit(fleet)
      const [first, second, third] = await addMany([{}, {}, {}])
      const [one] = (await reserve()).jobs
      await finish(one!, { kind: 'returned' })
      const [again] = (await reserve()).jobs
      expect(again).toMatchObject({ id: first, attempt: 1, uncounted: 0 })
      await finish(again!, { kind: 'released' })
      const order = (await reserve(3)).jobs.map(({ id }) => id)
      expect(order).toEqual([second, third, first])
    })

    it('a released job counts as an attempt once it has used up uncountedTurns', async () => {
      const { add, reserve, finish, dead } = createQueueKit(fleet)
      const id = await add({ attempts: 2 })
      const answers: unknown[] = []
      for (let turn = 0; turn < 4; turn++) {
        const [job] = (await reserve()).jobs
        expect(job).toMatchObject({ id, uncounted: Math.min(turn, 2) })
        answers.push(await finish(job!, { kind: 'released', text: '429' }, { uncountedTurns: 2 }))
      }
      expect(answers).toEqual(['again', 'again', 'again', 'dead'])
      expect(await dead()).toMatchObject([{ id, attempt: 2, text: '429' }])
    })
  })

  describe('a job that opens the breaker by itself each time', () => {
    it('a job that opens the breaker each time becomes a dead letter after uncountedTurns and attempts', async () => {
      const breaker = { consecutiveFailures: 1, openMs: 20, maxOpenMs: 20, probes: 1, successes: 1 }
      const settings = { uncountedTurns: 3, attempts: 2, baseMs: 1, maxMs: 5 }
      const { queue } = createPod(fleet, { breaker }, settings)
      let turns = 0
      const worker = queue.work(async () => {
        turns++
        throw new Error('it breaks the downstream')
      })
      await fleet.until(queue.add('poison'))
      await eventually(fleet, () => worker.snapshot().dead === 1)
      expect(turns).toBeLessThanOrEqual(5)
    })
  })
}
