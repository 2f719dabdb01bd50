/** The search finds fleets that do not recover by themselves, and changes that let them recover. */
import { isDeepStrictEqual } from 'node:util'
import {
  renderSearch,
  type Scenario,
  type StabilitySearch,
  searchStability,
} from '@spillway/simulator'
import type { GuardOptions } from 'spillway'
import { beforeAll, describe, expect, it } from 'vitest'
import { usualOrLong } from '../../spillway/test/long-run.js'

/** Retries without a budget, and a long queue without a deadline. */
const METASTABLE: Scenario = {
  name: 'small',
  title: 'A fleet that does not recover',
  story: 'The vendor continues to work on calls that have timed out.',
  durationMs: '10s',
  pods: usualOrLong(1, 2),
  vendor: { serviceMs: { min: 80, max: 120 }, capacity: usualOrLong(4, 5) },
  guard: {
    queue: { size: 2_000, timeoutMs: '60s' },
    concurrency: { limit: 500 },
    timeout: { callMs: '1s' },
    retry: { attempts: 4, budget: 1, baseMs: 50, maxQueueWaitMs: '60s' },
  },
  clients: [{ name: 'users', rps: usualOrLong(32, 40), timeoutMs: '60s' }],
  expect: [],
}
const HEALTHY: Scenario = {
  ...METASTABLE,
  guard: {
    queue: { size: 20, timeoutMs: '500ms' },
    concurrency: { limit: 3 },
    timeout: { callMs: '5s' },
  },
}
const RANGE = { maxDurationMs: 3_000, recoverMs: 4_000, maxSize: 8 }

let found: StabilitySearch
beforeAll(async () => {
  found = await searchStability(METASTABLE, RANGE)
})

describe('searchStability', () => {
  it('retries without a budget and a long queue do not recover from a short slowdown', () => {
    expect(found.stable).toBe(false)
    expect(found.servedBefore).toBeGreaterThan(0.95)
    const { before, after } = found.example!
    expect(after).toBeLessThan(0.9 * before)
    expect(found.safeLoad).toBeLessThan(1)
  })

  it('longer triggers need not be larger than shorter ones', () => {
    const sizes = found.boundary
      .filter(({ load }) => load === 1)
      .map(({ size }) => size ?? Number.POSITIVE_INFINITY)
    expect(sizes).toEqual([...sizes].sort((one, other) => other - one))
  })

  it('the recommended change, applied, removes the boundary', async () => {
    const [best] = found.changes
    const { stable, boundary } = await searchStability(METASTABLE, { ...RANGE, guard: best!.guard })
    expect(boundary.filter(({ size }) => size !== null)).toEqual([])
    expect(stable).toBe(true)
  })

  it('the report names the boundary and the line to change', () => {
    const text = renderSearch(found)
    expect(text).toContain('Smallest trigger from which the fleet does not recover')
    expect(text).toContain(`  ${found.changes[0]!.yaml}`)
  })

  it('a fleet with few slots and a short queue recovers from every trigger', async () => {
    const healthy = await searchStability(HEALTHY, RANGE)
    expect(healthy.boundary.map(({ size }) => size)).toEqual([null, null, null])
    expect(healthy).toMatchObject({ stable: true, changes: [], example: null, safeLoad: null })
    expect(renderSearch(healthy)).toContain('The fleet recovers from every trigger in this range.')
  })

  it.each(['fail', 'load'] as const)('a trigger of kind %s can be searched', async (trigger) => {
    const range = { ...RANGE, maxSize: trigger === 'fail' ? 1 : 4 }
    const { stable } = await searchStability(HEALTHY, { ...range, trigger })
    expect(stable).toBe(true)
  })

  it('the search tries more changes of a step if the first three promising changes do not remove the boundary', async () => {
    // With the usual guard the fleet recovers from triggers below 3, with most changes from those below 6.
    const recoversBelow = (guard: GuardOptions) => {
      if (guard.concurrency?.limit === 250) return Number.POSITIVE_INFINITY
      return isDeepStrictEqual(guard, METASTABLE.guard) ? 3 : 6
    }
    const { changes } = await searchStability(METASTABLE, {
      ...RANGE,
      runTrials: async (trials) =>
        trials.map(({ guard, size = 0 }) => ({
          offered: 100,
          goodput: size < recoversBelow(guard) ? 100 : 0,
        })),
    })
    expect(changes.map(({ yaml, step }) => ({ yaml, step }))).toEqual([
      { yaml: 'concurrency: { limit: 250 }', step: 1 },
    ])
  })

  it('durations written as text are changed like numbers', async () => {
    const tried = new Set<unknown>()
    await searchStability(METASTABLE, {
      ...RANGE,
      runTrials: async (trials) => {
        for (const { guard } of trials) tried.add(guard.queue?.timeoutMs).add(guard.timeout?.callMs)
        return trials.map(({ size = 0 }) => ({ offered: 100, goodput: size < 3 ? 100 : 0 }))
      },
    })
    expect([...tried]).toEqual(
      expect.arrayContaining([30_000, 15_000, 7_500, 2_000, 4_000, 8_000, 500, 250, 125]),
    )
  })

  it('a fleet that serves nothing without a trigger is an error', async () => {
    const vendor = { ...HEALTHY.vendor, failureRate: 1 }
    await expect(searchStability({ ...HEALTHY, vendor }, RANGE)).rejects.toThrow(
      'small: without a trigger the fleet serves nothing',
    )
  })

  it('the same seed gives the same result', async () => {
    const vendor = { ...METASTABLE.vendor, capacity: 2 }
    const clients = [{ ...METASTABLE.clients[0]!, rps: 16 }]
    const scenario = usualOrLong({ ...METASTABLE, vendor, clients }, METASTABLE)
    const range = usualOrLong(
      { ...RANGE, maxDurationMs: 2_000, recoverMs: 1_000, maxSize: 4 },
      RANGE,
    )
    const first = await searchStability(scenario, range)
    expect(first.stable).toBe(false)
    expect(await searchStability(scenario, range)).toEqual(first)
  })
})
