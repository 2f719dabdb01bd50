// test-group: io

/**
 * A job is handed out a bounded number of times, in total and per second, and then ends or becomes a dead
 * letter. Tested with random outcomes, in virtual time and on a real Redis.
 */
import { createSpillway, type JobQueueOptions, SpillwayError } from 'spillway'
import { sleep } from 'spillway/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { GuardOptions } from '../src/guard/options.js'
import { fc } from './fast-check.js'
import { createRedisFleet, type Fleet } from './limit-claims/fleet.js'
import { createMemoryFleet } from './limit-claims/memory-fleet.js'
import { usualOrLong } from './long-run.js'
import { START_MS } from './topologies.js'

const OUTCOMES = ['ok', '429', '429 later', '503', 'throw', '400', 'refused', 'slow'] as const

const history = fc.record({
  jobs: fc.array(
    fc.record({
      /** One for each turn; the last one is repeated. */
      outcomes: fc.array(fc.constantFrom(...OUTCOMES), { minLength: 1, maxLength: 4 }),
      fate: fc.constantFrom('none', 'none', 'none', 'cancel', 'deadline', 'corrupt'),
      tenant: fc.constantFrom(undefined, 'a', 'b'),
      priority: fc.constantFrom('critical', 'normal', 'low'),
    }),
    { minLength: 1, maxLength: 12 },
  ),
  pods: fc.integer({ min: 1, max: 2 }),
  limited: fc.boolean(),
  breaker: fc.boolean(),
  attempts: fc.integer({ min: 1, max: 3 }),
  uncountedTurns: fc.constantFrom<number>(0, 2, 10),
})
type History = typeof history extends fc.Arbitrary<infer T> ? T : never

/** `unit` is the length of one simulated second in ms, which shortens the run in real time. */
async function play(fleet: Fleet, given: History, name: string, unit: number): Promise<void> {
  const { clock } = fleet
  const { attempts, uncountedTurns } = given
  const guard: GuardOptions = {
    basePauseMs: unit / 2,
    maxPauseMs: 4 * unit,
    ...(given.limited && { limits: [{ limit: 10_000, windowMs: '1h' }] }),
    ...(given.breaker && {
      breaker: { consecutiveFailures: 2, openMs: unit, maxOpenMs: 2 * unit, probes: 1 },
    }),
  }
  const settings: Partial<JobQueueOptions> = {
    attempts,
    uncountedTurns,
    baseMs: unit,
    maxMs: 4 * unit,
    jitter: 'none',
    keep: 0,
  }
  const turns = new Map<string, number[]>()
  const store = fleet.store()
  const pods = Array.from({ length: given.pods }, (_, pod) => {
    const spillway = createSpillway({ store, clock, pod: `p${pod}` })
    spillway.guard(name, guard)
    const queue = spillway.jobQueue<number, unknown>('q', { guard: name, ...settings })
    queue.work(async ({ id, data }, { signal }) => {
      const before = turns.get(id) ?? []
      turns.set(id, [...before, clock.now()])
      const { outcomes } = given.jobs[data]!
      const outcome = outcomes[Math.min(before.length, outcomes.length - 1)]
      if (outcome === 'ok') return 'done'
      if (outcome === 'slow') return sleep(clock, unit / 4, signal)
      if (outcome === 'throw') throw new Error('it failed')
      if (outcome === 'refused') throw refusal()
      const headers = outcome === '429 later' ? { 'retry-after-ms': String(2 * unit) } : {}
      throw Object.assign(new Error(outcome), { status: Number.parseInt(outcome!, 10), headers })
    })
    return { spillway, queue }
  })
  const { queue } = pods[0]!
  try {
    for (const [index, { fate, tenant, priority }] of given.jobs.entries()) {
      const own = { ...(tenant && { tenant }), ...(fate === 'deadline' && { timeoutMs: 3 * unit }) }
      const { id } = await fleet.until(
        queue.add(index, {
          ...own,
          priority: priority as 'low',
          delayMs: fate === 'cancel' ? unit : 0,
        }),
      )
      if (fate === 'cancel') await fleet.until(queue.cancel(id))
      if (fate === 'corrupt') await addCorrupt(store, name)
    }
    for (let waited = 0; ; waited++) {
      const { waiting, delayed, active } = await fleet.until(queue.counts())
      if (waiting + delayed + active === 0) break
      expect(waited).toBeLessThan(1_000)
      await fleet.sleep(unit)
    }
  } finally {
    await Promise.all(pods.map(({ spillway }) => fleet.until(spillway.close({ graceMs: 0 }))))
  }
  for (const [, startsMs] of turns) {
    expect(startsMs.length).toBeLessThanOrEqual(attempts + uncountedTurns)
    // Turns are at least half a unit apart.
    for (const [turn, atMs] of startsMs.entries()) {
      const soon = startsMs.slice(turn).filter((each) => each < atMs + unit - 1)
      expect(soon.length).toBeLessThanOrEqual(3)
    }
  }
}

function refusal(): SpillwayError {
  return new SpillwayError({
    code: 'CIRCUIT_OPEN',
    stage: 'breaker',
    scope: 'shared',
    explain: () => 'another guard refuses',
  })
}

async function addCorrupt(store: ReturnType<Fleet['store']>, guard: string): Promise<void> {
  const job = { data: '{', priority: 2, delayUs: 0, deadlineUs: 0, key: '', tenant: '', cost: {} }
  await store.queues.add({
    guard,
    queue: 'q',
    lifeUs: 3_600_000_000,
    jobs: [{ ...job, attempts: 1 }],
    maxSize: 100,
    maxPerTenant: 100,
  })
}

describe('jobs with any mix of outcomes', () => {
  it('jobs have a bounded number of turns in every second, and all end (virtual time)', async () => {
    let number = 0
    await fc.assert(
      fc.asyncProperty(history, async (given) => {
        await play(createMemoryFleet(), given, `bounded-${++number}`, 1_000)
      }),
      { numRuns: 60 },
    )
  }, 120_000)

  describe('on a real Redis', () => {
    const fleet = createRedisFleet()
    beforeAll(() => fleet.start(), START_MS)
    afterAll(() => fleet.stop())

    it('jobs have a bounded number of turns in every second, and all end (real Redis)', async () => {
      // All at once, because they mostly wait. A unit is longer than a busy machine delays a timer.
      const histories = fc.sample(history, usualOrLong(8, 40))
      const played = histories.map(async (given, number) => {
        const short = { ...given, uncountedTurns: Math.min(2, given.uncountedTurns) }
        await play(fleet, short, `bounded-${number}`, 300).catch((cause) => {
          throw new Error(`history ${JSON.stringify(short)}`, { cause })
        })
      })
      await Promise.all(played)
    }, 120_000)
  })
})
