import { checkNeeds, findConflicts, type PlanNeeds, planFor, rehearse } from '@spillway/simulator'
import type { GuardOptions } from 'spillway'
import { describe, expect, it } from 'vitest'
import { usualOrLong } from '../../spillway/test/long-run.js'

const llm: PlanNeeds = {
  limits: [
    { limit: 500, windowMs: '1m' },
    { limit: 90_000, windowMs: '1m', unit: 'tokens' },
  ],
  pods: 10,
  cores: 1,
  latencyMs: '30s',
  p99Ms: '60s',
  deadlineMs: '120s',
}

const SMALL = [
  ['a fast API', { limits: [{ limit: 800, windowMs: '10s' }], pods: 5, latencyMs: 60 }],
  ['an LLM', { limits: [{ limit: 200, windowMs: '1m' }], pods: 4, latencyMs: '2s', p99Ms: '9s' }],
  ['one pod', { limits: [{ limit: 100, windowMs: '10s' }], pods: 1, latencyMs: 300 }],
] satisfies [string, PlanNeeds][]
const LARGE = [
  ['a faster API', { limits: [{ limit: 2_000, windowMs: '10s' }], pods: 5, latencyMs: 60 }],
  [
    'an LLM with 8 pods',
    { limits: [{ limit: 500, windowMs: '1m' }], pods: 8, latencyMs: '2s', p99Ms: '9s' },
  ],
] satisfies [string, PlanNeeds][]
const REHEARSED: [string, PlanNeeds][] = usualOrLong(SMALL, [...SMALL, ...LARGE])

describe('planFor', () => {
  it('the planned pace is 80 % of the rate that the concurrent calls allow', () => {
    const { guard, numbers } = planFor(llm)
    expect(guard.concurrency).toEqual({ limit: 50 })
    // 50 calls / 30 s × 0.8 = 80 per minute.
    expect(guard.pace).toMatchObject({ limit: 80, windowMs: 60_000 })
    expect(numbers.find(({ path }) => path === 'pace')?.because).toContain(
      '50 at once / 30 s × 0.8',
    )
  })

  it('the plan keeps the whole vendor limit, however many pods there are', () => {
    for (const pods of [1, 10, 1_000]) {
      const { guard } = planFor({ ...llm, pods })
      expect(guard.limits?.map(({ limit }) => limit)).toEqual([500, 90_000])
    }
  })

  it('the planned concurrency is limited by the scarcest resource', () => {
    const limitOf = (more: Partial<PlanNeeds>) =>
      planFor({ ...llm, ...more }).guard.concurrency?.limit
    expect(limitOf({ cores: 2 })).toBe(100)
    expect(limitOf({ cores: 2, sockets: 40 })).toBe(40)
    expect(limitOf({ cores: 64 })).toBe(200)
    expect(limitOf({ cores: 2, memoryBytes: 64 * 1_024 ** 2 })).toBe(32)
  })

  it('the plan gives a reason for every number and has no conflicting values', () => {
    for (const latencyMs of [5, 200, 30_000]) {
      for (const pods of [1, 7, 300]) {
        const { numbers, guard } = planFor({ limits: llm.limits, pods, latencyMs })
        expect(numbers.every(({ because }) => because.length > 10)).toBe(true)
        const needs = checkNeeds({ limits: llm.limits, pods, latencyMs })
        expect(findConflicts(guard, needs)).toEqual([])
      }
    }
  })

  it('the plan warns when the fleet is too small for its limit or too large for a share of it', () => {
    const small = planFor({ limits: [{ limit: 6_000, windowMs: '1m' }], pods: 1, latencyMs: '10s' })
    expect(small.warnings.join()).toContain('the fleet cannot use its contract')
    const large = planFor({ limits: [{ limit: 60, windowMs: '1m' }], pods: 100, latencyMs: '1s' })
    expect(large.warnings.join()).toContain("a pod's share is less than one")
  })

  it.each(REHEARSED)('the plan holds in the simulator for %s', async (_, needs) => {
    const { checks, passed } = await rehearse(needs, planFor(needs).guard)
    expect(checks.filter(({ spillway }) => !spillway.holds)).toEqual([])
    expect(passed).toBe(true)
  })
})

describe('findConflicts', () => {
  const needs = checkNeeds({ ...llm, latencyMs: '2s', p99Ms: '5s', deadlineMs: '10s', sockets: 20 })

  it.each([
    ['queue.timeoutMs', { queue: { size: 10, timeoutMs: '10s' } }],
    ['concurrency.limit', { concurrency: { limit: 21 } }],
    ['pace', { pace: { limit: 10, windowMs: '1s' } }],
    ['timeout.callMs', { timeout: { callMs: '11s' } }],
    ['timeout.callMs', { timeout: { callMs: '3s' } }],
    ['retry.attempts', { retry: { attempts: 6 }, timeout: { callMs: '5s' } }],
    ['shed.maxQueue', { shed: { maxQueue: 11 }, queue: { size: 10, timeoutMs: '1s' } }],
    ['breaker.minimumCalls', { breaker: { failureRate: 0.5, windowMs: '1s' } }],
    ['limits', { limits: [{ limit: 501, windowMs: '1m' }] }],
  ] as [string, GuardOptions][])('the conflicting value %s is found', (path, guard) => {
    expect(findConflicts(guard, needs)).toEqual([
      expect.stringMatching(`^${path}: .*; (lower|raise|set|use) `),
    ])
  })
})
