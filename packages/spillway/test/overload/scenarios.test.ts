/** Mechanisms against overload, each compared with its absence. */
import { describe, expect, it } from 'vitest'
import { createRandom } from '../../src/core/random.js'
import { sleep } from '../../src/core/time/sleep.js'
import type { GuardOptions } from '../../src/guard/options.js'
import type { RunOptions } from '../../src/guard/run-options.js'
import { createSpillway } from '../../src/guard/spillway.js'
import { createVendor } from '../../src/testing/vendor.js'
import { createVirtualClock } from '../../src/testing/virtual-clock.js'
import { usualOrLong } from '../long-run.js'
import { percentile, play, servedOf, shareServed, type Visit, within } from './traffic.js'

const SERVICE_MS = 100
const CAPACITY = 20
/** Calls per second that the vendor can serve. */
const CAPACITY_RPS = (CAPACITY * 1_000) / SERVICE_MS
const PATIENCE_MS = 1_000
const QUEUE_MS = 300
const OVERLOAD_MS = usualOrLong(5_000, 8_000)

/** A vendor that serves twenty calls at once and spends its time even if the caller has left. */
function createScene(guarded: GuardOptions | undefined, seed: number) {
  const clock = createVirtualClock({ quick: true })
  const random = createRandom(seed)
  const jitter = createRandom(seed + 1)
  const vendor = createVendor({
    clock,
    random,
    capacity: CAPACITY,
    serviceMs: () => SERVICE_MS * (0.8 + 0.4 * jitter()),
    answers: 'throw',
  })
  const spillway = createSpillway({ clock, random: createRandom(seed + 2) })
  const guard = guarded && spillway.guard('vendor', guarded)
  const ask = (options: RunOptions = {}) => {
    if (guard === undefined) return within(clock, PATIENCE_MS, vendor.call())
    return guard.run(() => vendor.call(), { timeoutMs: PATIENCE_MS, ...options })
  }
  return { clock, random, vendor, spillway, guard, ask }
}

const FIXED: GuardOptions = {
  shed: { maxQueue: 60 },
  queue: { size: 60, timeoutMs: QUEUE_MS },
  concurrency: { limit: CAPACITY },
}
const ADAPTIVE: GuardOptions = {
  ...FIXED,
  concurrency: { adaptive: 'gradient2', initial: 10, max: 200 },
}

async function overload(guarded: GuardOptions | undefined, times: number): Promise<Visit[]> {
  const { clock, random, spillway, ask } = createScene(guarded, times)
  const visits = await play(clock, random, [
    { kind: 'all', rps: CAPACITY_RPS * times, untilMs: OVERLOAD_MS, ask: () => ask() },
  ])
  await clock.until(spillway.close())
  // Skips the first second.
  return visits.filter(({ cameMs }) => cameMs >= 1_000)
}

const goodput = (visits: readonly Visit[]) =>
  (servedOf(visits).length * 1_000) / ((OVERLOAD_MS - 1_000) * CAPACITY_RPS)

describe.each([2, 5, 10])("load of %i times the vendor's capacity", (times) => {
  it('without a guard almost no call is served in time', async () => {
    const visits = await overload(undefined, times)
    expect(goodput(visits)).toBeLessThan(0.3)
  })

  it.each([
    ['a known limit', FIXED],
    ['an adaptive limit', ADAPTIVE],
  ])(
    'a guard with %s keeps 90 % goodput, and admitted calls are served in time',
    async (_, options) => {
      const visits = await overload(options, times)
      expect(goodput(visits)).toBeGreaterThanOrEqual(0.9)
      expect(percentile(servedOf(visits), 0.99)).toBeLessThanOrEqual(2 * SERVICE_MS + QUEUE_MS)
    },
  )
})

describe('spike of low priority with twelve times the capacity', () => {
  const UNTIL_MS = usualOrLong(6_000, 12_000)
  const SPIKE = usualOrLong({ fromMs: 1_000, untilMs: 4_000 }, { fromMs: 2_000, untilMs: 8_000 })

  async function spike(guarded: GuardOptions | undefined) {
    const { clock, random, spillway, ask } = createScene(guarded, 7)
    const visits = await play(clock, random, [
      {
        kind: 'premium',
        rps: CAPACITY_RPS / 2,
        untilMs: UNTIL_MS,
        ask: () => ask({ priority: 'high', tier: 'premium' }),
      },
      {
        kind: 'free',
        rps: CAPACITY_RPS * 12,
        ...SPIKE,
        ask: () => ask({ priority: 'low', tier: 'free' }),
      },
    ])
    await clock.until(spillway.close())
    return shareServed(visits.filter(({ kind }) => kind === 'premium'))
  }

  it('without priorities a spike takes all tiers down', async () => {
    expect(await spike(undefined)).toBeLessThan(0.7)
  })

  it('with tiers the top tier gets at least 99.4 % of its answers during a spike', async () => {
    const share = await spike({
      shed: { maxQueue: 60, tiers: { free: 0.7, pro: 0.9 } },
      queue: { size: 60, timeoutMs: QUEUE_MS },
      concurrency: { limit: CAPACITY },
    })
    expect(share).toBeGreaterThanOrEqual(0.994)
  })
})

describe('one-second pause at 70 % load with clients that retry at once', () => {
  const PAUSE_AT_MS = 5_000
  const PAUSE_MS = 1_000

  /** Makes up to five attempts with a timeout of half a second each. */
  async function pause(guarded: GuardOptions | undefined) {
    const { clock, random, vendor, spillway, guard } = createScene(guarded, 11)
    const once = () => {
      if (guard === undefined) return within(clock, 500, vendor.call())
      return guard.run(() => vendor.call(), { timeoutMs: 500 })
    }
    const eager = async () => {
      for (let attempt = 1; ; attempt++) {
        try {
          return await once()
        } catch (error) {
          if (attempt === 5) throw error
          await sleep(clock, 20)
        }
      }
    }
    clock.schedule(PAUSE_AT_MS, () => vendor.brownOut(1_000_000))
    clock.schedule(PAUSE_AT_MS + PAUSE_MS, () => vendor.recover())
    const visits = await play(clock, random, [
      { kind: 'all', rps: CAPACITY_RPS * 0.7, untilMs: 14_000, ask: eager },
    ])
    await clock.until(spillway.close())
    const later = PAUSE_AT_MS + PAUSE_MS + 5_000
    return {
      before: shareServed(visits.filter(({ cameMs }) => cameMs < PAUSE_AT_MS - 2_000)),
      after: shareServed(visits.filter(({ cameMs }) => cameMs >= later)),
    }
  }

  it('without a guard the retries keep the vendor overloaded after a pause', async () => {
    const { before, after } = await pause(undefined)
    expect(before).toBeGreaterThan(0.99)
    expect(after).toBeLessThan(0.7)
  })

  it('with a guard a pause is over within five seconds', async () => {
    const { before, after } = await pause({
      shed: { maxQueue: 40 },
      queue: { size: 40, timeoutMs: QUEUE_MS },
      concurrency: { limit: CAPACITY, graceMs: 10_000 },
    })
    expect(before).toBeGreaterThan(0.99)
    expect(after).toBeGreaterThanOrEqual(0.95)
  })
})

describe('vendor whose capacity halves and doubles', () => {
  const CAPACITIES = [50, 25, 50, 100]
  /** Long enough for an adaptive limit to settle. */
  const PHASE_MS = usualOrLong(10_000, 20_000)

  /** Average distance between limit and capacity in the second half of each phase. */
  async function errors(concurrency: GuardOptions['concurrency'], forMs = PHASE_MS) {
    const clock = createVirtualClock({ quick: true })
    const random = createRandom(3)
    const vendor = createVendor({
      clock,
      random,
      capacity: 50,
      serviceMs: (draw) => SERVICE_MS * (0.8 + 0.4 * draw()),
    })
    const spillway = createSpillway({ clock, random })
    const guard = spillway.guard('vendor', {
      queue: { size: 100, timeoutMs: '1s' },
      concurrency: concurrency as NonNullable<typeof concurrency>,
    })
    const found: number[] = []
    let fromMs = 0
    for (const capacity of CAPACITIES) {
      const limits: number[] = []
      clock.schedule(fromMs, () => vendor.resize(capacity))
      for (let ms = forMs / 2; ms < forMs; ms += 100) {
        clock.schedule(fromMs + ms, () => limits.push(guard.snapshot().limit))
      }
      fromMs += forMs
      clock.schedule(fromMs - 1, () => {
        const mean = limits.reduce((sum, each) => sum + each, 0) / limits.length
        found.push(Math.abs(mean - capacity) / capacity)
      })
    }
    // More load than the vendor can ever serve.
    const load = {
      kind: 'all',
      rps: 1_100,
      untilMs: fromMs,
      ask: () => guard.run(() => vendor.call()),
    }
    await play(clock, random, [load])
    await clock.until(spillway.close())
    return found
  }

  it('a fixed limit is off by as much as the capacity changed', async () => {
    const [, halved, , doubled] = await errors({ limit: 50 }, 4_000)
    expect(halved).toBeGreaterThanOrEqual(0.5)
    expect(doubled).toBeGreaterThanOrEqual(0.5)
  })

  it.each([
    ['gradient2', { adaptive: 'gradient2' }],
    ['aimd', { adaptive: 'aimd', latencyMs: SERVICE_MS * 1.15 }],
  ] as const)('%s finds each new capacity within 20 %', async (_, concurrency) => {
    for (const error of await errors(concurrency)) expect(error).toBeLessThanOrEqual(0.2)
  })
})
