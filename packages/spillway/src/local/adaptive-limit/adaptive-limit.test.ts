import { describe, expect, it } from 'vitest'
import { onEvent, type SpillwayEvent } from '../../core/events.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import {
  type AdaptiveLimit,
  type AdaptiveLimitOptions,
  createAdaptiveLimit,
} from './adaptive-limit.js'

/** A downstream that serves `capacity` calls at once; calls beyond that wait or are refused. */
function createWorld(options: AdaptiveLimitOptions, capacity: number) {
  const clock = createVirtualClock()
  const limit = createAdaptiveLimit({ ...options, clock })
  const world = { capacity, idleMs: 100, demand: Number.POSITIVE_INFINITY, refuses: false }
  /** Uses every slot once. */
  async function round(): Promise<void> {
    const inFlight = Math.min(limit.limit, world.demand)
    const crowd = Math.max(1, inFlight / world.capacity)
    const latencyMs = world.refuses ? world.idleMs : world.idleMs * crowd
    await clock.advance(latencyMs)
    for (let call = 0; call < inFlight; call++) {
      const dropped = world.refuses && call >= world.capacity
      limit.record({ latencyMs, inFlight, outcome: dropped ? 'dropped' : 'success' })
    }
  }
  return {
    clock,
    limit,
    world,
    async rounds(count: number) {
      for (let done = 0; done < count; done++) await round()
    },
    async forMs(ms: number) {
      const endMs = clock.now() + ms
      while (clock.now() < endMs) await round()
    },
  }
}

const off = (limit: AdaptiveLimit, capacity: number) => Math.abs(limit.limit - capacity) / capacity

describe.each(['aimd', 'gradient2'] as const)('adaptive limit (%s)', (adaptive) => {
  it('adaptive limit does not grow while less than half of it is used', async () => {
    const { limit, world, rounds } = createWorld({ adaptive, initial: 20 }, 1_000)
    world.demand = 9
    await rounds(1_000)
    expect(limit.limit).toBe(20)
    world.demand = 15
    await rounds(100)
    expect(limit.limit).toBeGreaterThan(20)
  })

  it('adaptive limit finds the capacity of a downstream that refuses calls beyond it', async () => {
    const { limit, world, rounds } = createWorld({ adaptive }, 60)
    world.refuses = true
    await rounds(200)
    expect(off(limit, 60)).toBeLessThanOrEqual(0.2)
    world.capacity = 30
    await rounds(200)
    expect(off(limit, 30)).toBeLessThanOrEqual(0.2)
  })

  it('adaptive limit stays between min and max', async () => {
    const { limit, world, rounds } = createWorld({ adaptive, min: 5, max: 40 }, 1_000)
    await rounds(500)
    expect(limit.limit).toBe(40)
    world.refuses = true
    world.capacity = 0
    await rounds(500)
    expect(limit.limit).toBe(5)
  })

  it('occasional failures do not shrink the adaptive limit', async () => {
    const { limit, rounds } = createWorld({ adaptive, initial: 50, max: 50 }, 1_000)
    for (let each = 0; each < 50; each++) {
      await rounds(1)
      limit.record({ latencyMs: 1, inFlight: 50, outcome: 'dropped' })
    }
    expect(limit.limit).toBe(50)
  })

  it('ignored outcomes do not change the adaptive limit', () => {
    const limit = createAdaptiveLimit({ adaptive })
    for (let call = 0; call < 1_000; call++) {
      limit.record({ latencyMs: 1, inFlight: 20, outcome: 'ignored' })
    }
    expect(limit.limit).toBe(20)
  })

  it('200 drops from one overload reduce the adaptive limit only once', async () => {
    const { clock, limit, rounds } = createWorld({ adaptive, initial: 100, max: 100 }, 100)
    await rounds(5)
    await clock.advance(1_000)
    for (let call = 0; call < 200; call++) {
      limit.record({ latencyMs: 500, inFlight: 100, outcome: 'dropped' })
    }
    expect(limit.limit).toBe(90)
  })
})

describe('gradient2 limit', () => {
  it('gradient2 follows the capacity of a queueing downstream when it halves and doubles', async () => {
    const { limit, world, forMs } = createWorld({ adaptive: 'gradient2' }, 50)
    for (const capacity of [50, 25, 50, 100]) {
      world.capacity = capacity
      await forMs(20_000)
      expect(off(limit, capacity)).toBeLessThanOrEqual(0.2)
    }
  })

  it('gradient2 does not take the queueing delay of a long incident as its baseline', async () => {
    const { limit, world, forMs } = createWorld({ adaptive: 'gradient2' }, 50)
    await forMs(20_000)
    world.capacity = 10
    // Half an hour is long enough for a moving average to grow fourfold.
    await forMs(1_800_000)
    expect(limit.snapshot().baselineMs).toBeLessThan(125)
    expect(off(limit, 10)).toBeLessThanOrEqual(0.3)
  })

  it('gradient2 raises its baseline when the downstream stays slower even without load', async () => {
    const { limit, world, forMs } = createWorld({ adaptive: 'gradient2' }, 50)
    await forMs(20_000)
    world.idleMs = 300
    await forMs(600_000)
    expect(limit.snapshot().baselineMs).toBeGreaterThan(250)
    expect(off(limit, 50)).toBeLessThanOrEqual(0.2)
    // The next probe measures the rest of the difference.
    world.idleMs = 100
    await forMs(40_000)
    expect(limit.snapshot().baselineMs).toBeLessThan(120)
  })

  it('a few very slow calls do not shrink the gradient2 limit', async () => {
    const { limit, clock } = createWorld({ adaptive: 'gradient2', initial: 50, max: 50 }, 50)
    for (let call = 0; call < 5_000; call++) {
      await clock.advance(2)
      limit.record({ latencyMs: call % 20 === 0 ? 3_000 : 100, inFlight: 50, outcome: 'success' })
    }
    expect(limit.limit).toBeGreaterThanOrEqual(45)
  })
})

describe('aimd limit', () => {
  it('aimd limits by latencyMs and has no baseline', async () => {
    const { limit, world, rounds } = createWorld({ adaptive: 'aimd', latencyMs: 110 }, 50)
    await rounds(300)
    expect(off(limit, 50)).toBeLessThanOrEqual(0.2)
    world.capacity = 25
    await rounds(300)
    expect(off(limit, 25)).toBeLessThanOrEqual(0.2)
    expect(limit.snapshot().baselineMs).toBeUndefined()
  })
})

it('adaptive limit emits limit.changed with the old and the new limit', async () => {
  const events: SpillwayEvent[] = []
  const stop = onEvent((event) => events.push(event))
  const { rounds } = createWorld({ name: 'model', adaptive: 'aimd' }, 1_000)
  await rounds(4)
  stop()
  expect(events).toEqual([{ type: 'limit.changed', name: 'model', from: 20, to: 21 }])
})

it.each([
  [
    { adaptive: 'gradient' },
    "adaptiveLimit.adaptive: must be one of 'aimd', 'gradient2', got \"gradient\"; did you mean 'gradient2'?",
  ],
  [{ adaptive: 'aimd', min: 9, max: 3 }, 'adaptiveLimit.min: must not be above max, which is 3'],
  [
    { adaptive: 'aimd', max: 3, initial: 9 },
    'adaptiveLimit.initial: must be from min to max, which are 1 and 3, got 9',
  ],
  [
    { adaptive: 'aimd', backof: 0.5 },
    "adaptiveLimit.backof: unknown option; did you mean 'backoff'?",
  ],
])('createAdaptiveLimit rejects %j with a message that names the option', (options, message) => {
  expect(() => createAdaptiveLimit(options as never)).toThrow(message)
})

describe.each(['aimd', 'gradient2'] as const)('an adaptive limit with %s', (adaptive) => {
  it.each([
    ['latencyMs NaN', { latencyMs: Number.NaN }],
    ['latencyMs Infinity', { latencyMs: Number.POSITIVE_INFINITY }],
    ['latencyMs below 0', { latencyMs: -1_000_000 }],
    ['latencyMs undefined', { latencyMs: undefined as never }],
    ['latencyMs 1e300', { latencyMs: 1e300 }],
    ['inFlight NaN', { inFlight: Number.NaN }],
    ['inFlight Infinity', { inFlight: Number.POSITIVE_INFINITY }],
  ])('an adaptive limit still finds the capacity after calls with %s', async (_, wrong) => {
    const latencyMs = adaptive === 'aimd' ? 130 : undefined
    const { limit, forMs } = createWorld({ adaptive, ...(latencyMs && { latencyMs }) }, 50)
    await forMs(5_000)
    for (const outcome of ['success', 'dropped'] as const) {
      limit.record({ latencyMs: 100, inFlight: 1, outcome, ...wrong })
    }
    await forMs(120_000)
    expect(limit.limit).toBeGreaterThan(25)
    expect(limit.limit).toBeLessThan(100)
    expect(limit.snapshot().baselineMs ?? 0).not.toBeNaN()
  })
})
