/**
 * Failures end within milliseconds while successes take seconds. The breaker must stay closed for a
 * healthy downstream and open for a failing one. `BREAKER_RUNS` sets the number of random runs of the
 * first claim, and `BREAKER_SEED` the first seed.
 */
import { describe, expect, it } from 'vitest'
import { BREAKER, createFleet, drawDead, drawHealthy, type Run } from './breaker-simulation.js'
import { usualOrLong } from './long-run.js'

const RUNS = Number(process.env.BREAKER_RUNS ?? usualOrLong(5, 100))
const COLD_STARTS = usualOrLong(3, 20)
const FIRST_SEED = Number(process.env.BREAKER_SEED ?? 1)

const WELL: Run = {
  seed: 1,
  errorRate: 0.05,
  failureMs: 5,
  successMs: 2_000,
  spread: 1,
  everyAttempt: true,
  callers: 100,
  pods: 1,
  retries: true,
  breaker: BREAKER,
  timeoutMs: 10_000,
  startWithinMs: 0,
}

async function openedMs(run: Run, forMs: number): Promise<number | undefined> {
  const fleet = createFleet(run)
  await fleet.call(forMs)
  await fleet.close()
  return fleet.openedMs()
}

describe('breaker of a healthy downstream', () => {
  it(`breaker of a healthy downstream opens in at most 1 of 100 runs at error rates up to 0.6 of its limit (${RUNS} runs)`, async () => {
    const opened: number[] = []
    for (let seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
      const run = drawHealthy(seed)
      const fleet = createFleet(run)
      const callMs = Math.max(2_000, 2.5 * run.successMs)
      await fleet.call(run.idleFirst ? Math.min(callMs, 5_000) : callMs)
      if (run.idleFirst && fleet.openedMs() === undefined) {
        await fleet.idle(60_000)
        await fleet.call(callMs)
      }
      if (fleet.openedMs() !== undefined) opened.push(seed)
      await fleet.close()
    }
    expect(opened.length, `seeds ${opened}`).toBeLessThanOrEqual(Math.ceil(RUNS / 100))
  }, 3_600_000)

  it.each([
    [0.05, 2_000, 100],
    [0.1, 5_000, 50],
    [0.1, 900, 200],
  ])(
    `breaker stays closed after ${COLD_STARTS} cold starts with %d errors, answers after %d ms and %d callers`,
    async (errorRate, successMs, callers) => {
      for (let seed = 1; seed <= COLD_STARTS; seed++) {
        const run = { ...WELL, seed, errorRate, successMs, callers }
        expect(await openedMs(run, successMs + 500), `seed ${seed}`).toBeUndefined()
      }
    },
  )

  it('breaker stays closed after a cold start with 10 consecutiveFailures', async () => {
    for (let seed = 1; seed <= COLD_STARTS; seed++) {
      const breaker = { consecutiveFailures: 10 }
      const run = { ...WELL, seed, errorRate: 0.1, breaker }
      expect(await openedMs(run, 2_500), `seed ${seed}`).toBeUndefined()
    }
  })
})

describe('breaker of a dead downstream', () => {
  it.each([1, 8])('breaker opens after minimumCalls failures in a row of %d pods', async (pods) => {
    const dead = { ...WELL, errorRate: 1, callers: 1, pods, retries: false }
    const fleet = createFleet(dead)
    await fleet.call(10_000)
    await fleet.close()
    expect(fleet.failures()).toBe(BREAKER.minimumCalls)
  })

  it.each([0.5, 0.9, 1])(
    'breaker opens within the first failures of 100 callers at failureRate %d',
    async (rate) => {
      const breaker = { ...BREAKER, failureRate: rate }
      const dead = { ...WELL, errorRate: 1, retries: false, breaker }
      expect(await openedMs(dead, 10_000)).toBeLessThanOrEqual(2 * dead.failureMs)
    },
  )

  it.each([0.5, 0.9])(
    'breaker of a downstream that hangs from the start opens within a timeout at failureRate %d',
    async (rate) => {
      const breaker = { ...BREAKER, failureRate: rate }
      const run = { ...WELL, hangs: true, retries: false, breaker }
      expect(await openedMs(run, 40_000)).toBeLessThanOrEqual(run.timeoutMs + 1)
    },
  )

  it.each([0.5, 0.9])(
    'breaker of a downstream that begins to hang opens within a timeout and the usual duration at %d',
    async (rate) => {
      // The window is shorter than the timeout, so earlier successes have left it.
      const breaker = { ...BREAKER, failureRate: rate, windowMs: '8s' as const }
      const run = { ...WELL, errorRate: 0, retries: false, startWithinMs: 2_000, breaker }
      const fleet = createFleet(run)
      await fleet.call(10_000)
      expect(fleet.openedMs()).toBeUndefined()
      fleet.become({ hangs: true })
      const sinceMs = fleet.nowMs()
      await fleet.call(40_000)
      await fleet.close()
      const startedMs = sinceMs + run.startWithinMs
      expect(fleet.openedMs()! - startedMs).toBeLessThanOrEqual(run.timeoutMs + 1.1 * run.successMs)
    },
  )

  it('a dead downstream opens the breaker at most four failures later than finished calls alone would', async () => {
    for (let seed = FIRST_SEED; seed < FIRST_SEED + COLD_STARTS; seed++) {
      const run = drawDead(seed)
      const fleet = createFleet(run)
      await fleet.call(10_000)
      await fleet.close()
      const lateMs = fleet.openedMs()! - fleet.finishedOnlyMs()!
      expect(lateMs, `seed ${seed}`).toBeLessThanOrEqual(4 * run.failureMs)
    }
  })

  it.each([
    ['an empty window', 0],
    ['a window full of successes', 40_000],
  ])(
    'a hang with %s opens the breaker at most the usual duration later than finished calls would',
    async (_window, warmMs) => {
      for (let seed = FIRST_SEED; seed < FIRST_SEED + usualOrLong(1, 10); seed++) {
        const run = { ...drawDead(seed), errorRate: 0 }
        const fleet = createFleet(run)
        if (warmMs > 0) await fleet.call(warmMs)
        fleet.become({ hangs: true })
        await fleet.call(5 * run.timeoutMs)
        await fleet.close()
        // The simulation ends when the breaker opens, which may be sooner.
        const lateMs = fleet.openedMs()! - (fleet.finishedOnlyMs() ?? fleet.nowMs())
        // Callers that start apart from each other time out apart from each other.
        const usualMs = Math.max(1.05 * run.successMs * run.spread, run.startWithinMs)
        expect(lateMs, `seed ${seed}`).toBeLessThanOrEqual(usualMs)
      }
    },
  )

  it('a hang behind a window full of successes opens the breaker within a timeout and the usual duration', async () => {
    for (let seed = FIRST_SEED; seed < FIRST_SEED + usualOrLong(1, 10); seed++) {
      const run = { ...drawDead(seed), errorRate: 0 }
      const fleet = createFleet(run)
      await fleet.call(40_000)
      fleet.become({ hangs: true })
      const sinceMs = fleet.nowMs()
      await fleet.call(5 * run.timeoutMs)
      await fleet.close()
      // Callers that start apart from each other time out apart from each other.
      const usualMs = Math.max(1.05 * run.successMs * run.spread, run.startWithinMs)
      expect(fleet.openedMs()! - sinceMs, `seed ${seed}`).toBeLessThanOrEqual(
        run.timeoutMs + usualMs,
      )
    }
  })

  it.each([
    ['fails at once', { errorRate: 1 }],
    ['does not answer', { hangs: true }],
  ])(
    'a downstream that %s for 0.8 s does not open the breaker behind a window full of successes',
    async (_how, change) => {
      const run = { ...WELL, errorRate: 0, successMs: 100, failureMs: 50, timeoutMs: 300 }
      const fleet = createFleet({ ...run, retries: false, callers: 20 })
      await fleet.call(20_000)
      fleet.become(change)
      await fleet.call(800)
      fleet.become({ errorRate: 0, hangs: false })
      await fleet.call(20_000)
      await fleet.close()
      expect(fleet.openedMs()).toBeUndefined()
    },
  )

  it.each([0.1, 0.3, 0.5])(
    'breaker opens within two latencies at 1.5 times a failureRate of %d',
    async (failureRate) => {
      let late = 0
      for (let seed = 1; seed <= usualOrLong(4, 10); seed++) {
        const breaker = { ...BREAKER, failureRate }
        const run = { ...WELL, seed, errorRate: 1.5 * failureRate, breaker, pods: 4 }
        const atMs = await openedMs(run, 3 * run.successMs)
        if (atMs === undefined || atMs > 2 * run.successMs) late++
      }
      expect(late).toBe(0)
    },
  )
})
