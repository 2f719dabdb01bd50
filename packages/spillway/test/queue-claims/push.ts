/** Progress and cancel reach the other pods at once, not with the next lease renewal. */
import { createSpillway, JobStopped } from 'spillway'
import { sleep } from 'spillway/testing'
import { describe, expect } from 'vitest'
import { it, onTestFinished } from '../concurrent-tests.js'
import type { Fleet } from '../limit-claims/fleet.js'

/** No lease is renewed within a test. */
const LEASE_MS = 3_600_000

export function claimPush(fleet: Fleet): void {
  const { clock } = fleet
  let guards = 0

  function createPods() {
    const name = `push-${fleet.kind}-${++guards}`
    return [1, 2].map((number) => {
      const spillway = createSpillway({ store: fleet.store(), clock, pod: `p${number}` })
      onTestFinished(() => fleet.until(spillway.close({ graceMs: 0 })))
      spillway.guard(name, {})
      return spillway.jobQueue<number>('q', { guard: name, leaseMs: LEASE_MS })
    })
  }
  async function eventually(done: () => boolean | Promise<boolean>): Promise<void> {
    for (let tries = 0; !(await done()); tries++) {
      // Only ends a test that hangs.
      expect(tries).toBeLessThan(5_000)
      await fleet.sleep(10)
    }
  }

  describe('a job that runs in another pod', () => {
    it('a job in another pod shows each progress change without waiting for the lease renewal', async () => {
      const [worker, reader] = createPods()
      let report = (_: number) => {}
      worker!.work(async (job, { signal }) => {
        report = (page) => job.progress({ page })
        await sleep(clock, LEASE_MS, signal)
      })
      const { id } = await fleet.until(reader!.add(1))
      await eventually(async () => (await fleet.until(reader!.jobStatus(id)))?.state === 'active')
      let changes = 0
      onTestFinished(reader!.watch(id, () => changes++))
      let page = 0
      const isShown = async () => {
        const seen = await fleet.until(reader!.jobStatus(id))
        return (seen?.progress as { page?: number } | undefined)?.page === page
      }
      // The first pages may come before the subscription, or be sent together.
      await eventually(() => {
        report(++page)
        return changes > 0
      })
      await eventually(isShown)
      for (let time = 0; time < 3; time++) {
        const before = changes
        report(++page)
        await eventually(() => changes > before)
        // The change that was reported may be an earlier one.
        await eventually(isShown)
      }
    })

    it('a job cancelled in another pod is aborted without waiting for the lease renewal', async () => {
      const [worker, other] = createPods()
      const reasons: unknown[] = []
      worker!.work(async (_, { signal }) => {
        await sleep(clock, LEASE_MS, signal).catch((reason) => reasons.push(reason))
        throw new Error('stopped')
      })
      const { id } = await fleet.until(other!.add(1))
      await eventually(async () => (await fleet.until(other!.jobStatus(id)))?.state === 'active')
      expect(await fleet.until(other!.cancel(id))).toBe(true)
      await eventually(() => reasons.length === 1)
      expect(reasons[0]).toBeInstanceOf(JobStopped)
      expect(reasons[0]).toMatchObject({ why: 'cancelled' })
      await eventually(async () => (await fleet.until(other!.job(id)))?.state === 'cancelled')
    })
  })
}
