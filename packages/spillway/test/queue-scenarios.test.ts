/** Typical uses of a job queue, in virtual time. */
import { describe, expect, it, onTestFinished } from 'vitest'
import type { SpillwayError } from '../src/core/errors.js'
import { sleep } from '../src/core/time/sleep.js'
import type { JobQueueOptions } from '../src/guard/jobs/api.js'
import type { GuardOptions } from '../src/guard/options.js'
import { createSpillway } from '../src/guard/spillway.js'
import { memoryStore } from '../src/store/memory/memory-store.js'
import { createVirtualClock } from '../src/testing/virtual-clock.js'

/** Pods that share a store, each with the same guard and job queue. */
function createPods(count: number, guard: GuardOptions, settings: Partial<JobQueueOptions> = {}) {
  const clock = createVirtualClock()
  const store = memoryStore({ clock })
  const pods = Array.from({ length: count }, (_, index) => {
    const spillway = createSpillway({ store, clock, pod: `p${index}` })
    onTestFinished(() => clock.until(spillway.close({ graceMs: 0 })))
    return {
      guard: spillway.guard('vendor', guard),
      queue: spillway.jobQueue<number, number>('batch', { guard: 'vendor', ...settings }),
    }
  })
  return { clock, pods, queue: pods[0]!.queue }
}

const many = (count: number, tenant?: string) =>
  Array.from({ length: count }, (_, data) => (tenant === undefined ? { data } : { data, tenant }))

describe('1,000 jobs and a vendor that is down for a minute', () => {
  it('jobs spend only the attempts that the breaker needs to open and probe, and all complete', async () => {
    const threshold = 5
    const { clock, pods, queue } = createPods(
      4,
      { breaker: { consecutiveFailures: threshold, openMs: '5s', probes: 2, successes: 2 } },
      { attempts: 3, keep: 0 },
    )
    let failures = 0
    const failed: string[] = []
    const mendedMs = clock.now() + 60_000
    const tries = new Map<string, number>()
    for (const pod of pods) {
      pod.queue.work(
        async ({ id, data, attempt }) => {
          tries.set(id, attempt)
          await sleep(clock, 50)
          if (clock.now() < mendedMs) {
            failures++
            failed.push(id)
            throw new Error('the vendor is broken')
          }
          return data
        },
        { concurrency: 10 },
      )
    }
    await clock.until(queue.addMany(many(1_000)))
    await clock.advance(60_000)
    const opened = 13
    await clock.advance(120_000)
    expect(await clock.until(queue.counts())).toMatchObject({ done: 1_000, dead: 0, waiting: 0 })
    // Attempts: each job was handed out once more than it failed.
    const attempts = [...tries.values()].reduce((sum, each) => sum + each, 0)
    expect(failures).toBeGreaterThan(threshold)
    // With 40 jobs in flight the breaker opens once as many have failed as are still in flight. A round of
    // probes ends with the second failure, and a third probe may have begun by then.
    const toOpen = Math.max(threshold, 40 / 2)
    expect(attempts - 1_000).toBeLessThanOrEqual(toOpen + 3 * opened)
    expect(attempts - 1_000).toBeGreaterThan(0)
  })
})

describe('6 calls per second beside endless jobs on one limit of 600 per minute', () => {
  it.each([1, 4])(
    'calls are never refused and jobs use the limit to nine tenths, with %i pods',
    async (count) => {
      const { clock, pods, queue } = createPods(
        count,
        {
          limits: [{ limit: 600, windowMs: '1m' }],
          queue: { size: 100, timeoutMs: '1s' },
        },
        { resultMs: 0, maxSize: 20_000 },
      )
      let [jobs, calls] = [0, 0]
      const refused: string[] = []
      for (const pod of pods) {
        pod.queue.work(
          async () => {
            jobs++
            await sleep(clock, 200)
            return 0
          },
          { concurrency: 20 },
        )
      }
      await clock.until(queue.addMany(many(20_000)))
      // Jobs have used the limit alone before calls begin.
      await clock.advance(90_000)
      expect(jobs).toBeGreaterThan(600)
      const [jobsBefore, minutes] = [jobs, 5]
      for (let call = 0; call < minutes * 60 * 6; call++) {
        const { guard } = pods[call % count]!
        guard
          .run(() => sleep(clock, 100))
          .then(
            () => calls++,
            ({ code }: SpillwayError) => refused.push(code),
          )
        await clock.advance(1_000 / 6)
      }
      const used = (jobs - jobsBefore + calls) / (600 * minutes)
      expect(refused).toEqual([])
      expect(used).toBeGreaterThanOrEqual(0.9)
      expect(used).toBeLessThanOrEqual(1.02)
    },
  )
})

describe('two tenants with 10,000 and 10 jobs', () => {
  it('the ten jobs of the small tenant are done within the first 5 % of the run', async () => {
    const { clock, pods, queue } = createPods(2, {})
    const order: string[] = []
    await clock.until(queue.addMany(many(10_000, 'big')))
    await clock.until(queue.addMany(many(10, 'small')))
    for (const pod of pods) {
      pod.queue.work(async ({ tenant }) => {
        await sleep(clock, 10)
        order.push(tenant ?? '')
        return 0
      })
    }
    await clock.advance(20_000)
    expect(order).toHaveLength(10_010)
    expect(order.lastIndexOf('small')).toBeLessThan(0.05 * order.length)
  })
})
