/** Recovery: few probes at a time, then a ramp. */
import type { CircuitBreaker } from 'spillway/shared'
import { describe, expect } from 'vitest'
import { it } from '../concurrent-tests.js'
import type { Fleet } from '../limit-claims/fleet.js'
import {
  createDownstream,
  enter,
  enterTogether,
  eventually,
  halfOpen,
  LONG_MS,
  SHORT_MS,
  untilState,
} from './fleet.js'

/** A pod that was refused a probe permit waits this long before it requests again. */
const FULL_MS = 25

export function claimProbing(fleet: Fleet): void {
  const end = async (
    { pod, permit }: Awaited<ReturnType<typeof enterTogether>>[number],
    outcome: Parameters<CircuitBreaker['record']>[0],
  ) => {
    pod.record(outcome, permit)
    await fleet.until(pod.flush())
  }

  describe('half-open breaker', () => {
    it('half-open breaker grants exactly `probes` probes at once across the fleet', async () => {
      const pods = await halfOpen(fleet, { probes: 3, successes: 100, probeLeaseMs: LONG_MS }, 10)
      const grants = await enterTogether(pods, 5)
      expect(grants).toHaveLength(3)
      expect(grants.every(({ permit }) => permit.probe)).toBe(true)
      await fleet.sleep(FULL_MS)
      expect(await enterTogether(pods, 5)).toHaveLength(0)
      await end(grants[0]!, 'success')
      await fleet.sleep(FULL_MS)
      expect(await enterTogether(pods, 5)).toHaveLength(1)
    })

    it('half-open breaker closes on all pods after `successes` successful probes', async () => {
      const pods = await halfOpen(fleet, { probes: 2, successes: 3 }, 3)
      const first = await enterTogether(pods)
      for (const probe of first) await end(probe, 'success')
      expect(first[0]!.pod.state()).toBe('half-open')
      await fleet.sleep(FULL_MS)
      const [third] = await enterTogether(pods)
      await end(third!, 'success')
      expect(third!.pod.state()).toBe('closed')
      await untilState(fleet, pods, 'closed')
    })

    it('a half-open breaker opens again on all pods after two of three probes have failed', async () => {
      const pods = await halfOpen(fleet, { probes: 3, successes: 3, openMs: 1_000 }, 3)
      const grants = await enterTogether(pods)
      await end(grants[0]!, 'success')
      await end(grants[1]!, 'failure')
      expect(grants[1]!.pod.state()).toBe('half-open')
      await end(grants[2]!, 'failure')
      expect(grants[2]!.pod.state()).toBe('open')
      await untilState(fleet, pods, 'open')
    })

    it('a half-open breaker closes in spite of one failed probe', async () => {
      const [a] = await halfOpen(fleet, { probes: 1, successes: 2 })
      for (const outcome of ['success', 'failure', 'success'] as const) {
        expect(a!.state()).toBe('half-open')
        await end({ pod: a!, permit: await enter(a!) }, outcome)
      }
      expect(a!.state()).toBe('closed')
    })

    it('a half-open breaker opens again after one failed probe if it needs one success', async () => {
      const [a] = await halfOpen(fleet, { probes: 1, successes: 1 })
      await end({ pod: a!, permit: await enter(a!) }, 'failure')
      expect(a!.state()).toBe('open')
    })

    it('each half-open round counts its successes from zero', async () => {
      const [a] = await halfOpen(fleet, { probes: 1, successes: 2 })
      for (const outcome of ['success', 'failure', 'failure'] as const) {
        await end({ pod: a!, permit: await enter(a!) }, outcome)
      }
      await untilState(fleet, [a!], 'half-open')
      await end({ pod: a!, permit: await enter(a!) }, 'success')
      expect(a!.state()).toBe('half-open')
      await end({ pod: a!, permit: await enter(a!) }, 'success')
      expect(a!.state()).toBe('closed')
    })

    it.each(['ignored', 'throttled'] as const)(
      'a probe that was %s counts nothing and returns its permit',
      async (outcome) => {
        const [a] = await halfOpen(fleet, { probes: 1, successes: 1, probeLeaseMs: LONG_MS })
        for (let probe = 0; probe < 5; probe++) {
          await end({ pod: a!, permit: await enter(a!) }, outcome)
          expect(a!.snapshot()).toMatchObject({ state: 'half-open', probes: 0, successes: 0 })
        }
      },
    )

    it('a slow probe counts as a failure only if slowRate is set', async () => {
      const [strict] = await halfOpen(fleet, { slowRate: 0.5, slowMs: 100, successes: 1 })
      await end({ pod: strict!, permit: await enter(strict!) }, 'slow')
      expect(strict!.state()).toBe('open')
      const [other] = await halfOpen(fleet, { failureRate: 0.5, slowMs: 100, successes: 1 })
      await end({ pod: other!, permit: await enter(other!) }, 'slow')
      expect(other!.state()).toBe('closed')
    })

    it('a probe without a result is replaced after its lease', async () => {
      const options = { probes: 1, successes: 1, probeLeaseMs: 300, maxProbeMs: 300 }
      const pods = await halfOpen(fleet, options, 2)
      const startMs = fleet.clock.now()
      const [lost] = await enterTogether(pods)
      const other = pods.find((pod) => pod !== lost!.pod)!
      let permit: Awaited<ReturnType<typeof enterTogether>> = []
      while (permit.length === 0 && fleet.clock.now() - startMs < 30_000) {
        await fleet.sleep(FULL_MS)
        permit = await enterTogether([other])
      }
      // The lease is renewed up to maxProbeMs and then kept for at most one more lease.
      expect(fleet.clock.now() - startMs).toBeGreaterThan(290)
      await end(permit[0]!, 'success')
      expect(other.state()).toBe('closed')
      // A late result of the lost probe is ignored.
      await end(lost!, 'failure')
      expect(other.state()).toBe('closed')
    })

    it('a probe that takes many times its lease keeps its permit', async () => {
      const options = { probes: 1, successes: 1, probeLeaseMs: 2_500 }
      const pods = await halfOpen(fleet, options, 2)
      const [long] = await enterTogether(pods)
      for (let attempt = 0; attempt < 12; attempt++) {
        await fleet.sleep(600)
        expect(await enterTogether(pods)).toHaveLength(0)
      }
      await end(long!, 'success')
      await untilState(fleet, pods, 'closed')
    })
  })

  describe('breaker open time', () => {
    it('open time grows with each failed probe up to maxOpenMs and resets after closing', async () => {
      const [a] = await halfOpen(fleet, {
        openMs: 400,
        openFactor: 2,
        maxOpenMs: 1_200,
        probes: 1,
        successes: 1,
        rampMs: 0,
        consecutiveFailures: 1,
      })
      const opened: number[] = []
      for (let round = 0; round < 3; round++) {
        await end({ pod: a!, permit: await enter(a!) }, 'failure')
        opened.push(a!.snapshot().untilMs!)
        await untilState(fleet, [a!], 'half-open')
      }
      await end({ pod: a!, permit: await enter(a!) }, 'success')
      expect(a!.state()).toBe('closed')
      a!.record('failure')
      await fleet.until(a!.flush())
      opened.push(a!.snapshot().untilMs!)
      for (const [round, ms] of [800, 1_200, 1_200, 400].entries()) {
        expect(opened[round], `${opened}`).toBeLessThanOrEqual(ms)
        expect(opened[round], `${opened}`).toBeGreaterThan(ms - 350)
      }
    })
  })

  describe('breaker ramp after closing', () => {
    const closed = async (rampMs: number, count = 1) => {
      const options = { probes: 2, successes: 1, rampMs, consecutiveFailures: 1 }
      const pods = await halfOpen(fleet, options, count)
      const [probe] = await enterTogether(pods)
      await end(probe!, 'success')
      await untilState(fleet, pods, 'closed')
      return pods
    }

    it('right after closing each pod may run only two calls at once', async () => {
      const pods = await closed(LONG_MS, 3)
      for (const pod of pods) {
        const grants = await enterTogether([pod], 100)
        expect(grants).toHaveLength(2)
        expect(grants.some(({ permit }) => permit.probe)).toBe(false)
        // A finished call frees capacity.
        await end(grants[0]!, 'success')
        expect(await enterTogether([pod], 100)).toHaveLength(1)
      }
    })

    it('sequential calls are never refused during the ramp', async () => {
      const [a] = await closed(LONG_MS)
      for (let call = 0; call < 100; call++) await a!.run(() => 'done')
    })

    it('all calls are allowed after rampMs', async () => {
      const [a] = await closed(SHORT_MS)
      await fleet.sleep(2 * SHORT_MS)
      expect(await enterTogether([a!], 1_000)).toHaveLength(1_000)
    })

    it('more concurrent calls are allowed as the ramp progresses', async () => {
      const [a] = await closed(1_000)
      let most = (await enterTogether([a!], 1_000)).length
      await eventually(fleet, () => a!.snapshot().ageMs < Number.POSITIVE_INFINITY)
      await fleet.sleep(600)
      most += (await enterTogether([a!], 1_000)).length
      expect(most).toBeGreaterThanOrEqual(2 * 2 ** 3)
    })

    it('a failure during the ramp opens the breaker as usual', async () => {
      const [a] = await closed(LONG_MS)
      await expect(a!.run(() => Promise.reject(new Error('again')))).rejects.toThrow('again')
      await fleet.until(a!.flush())
      expect(a!.state()).toBe('open')
    })

    it('rampMs: 0 turns the ramp off', async () => {
      const [a] = await closed(0)
      expect(await enterTogether([a!], 1_000)).toHaveLength(1_000)
    })
  })

  it('a breaker that never opened has no ramp', async () => {
    const pod = createDownstream(fleet, { probes: 1 })()
    expect(await enterTogether([pod], 1_000)).toHaveLength(1_000)
  })
}
