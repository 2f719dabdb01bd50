import { afterEach, describe, expect, it } from 'vitest'
import { onEvent, type SpillwayEvent } from '../../core/events.js'
import { createRandom } from '../../core/random.js'
import { createDeadline, runWithDeadline } from '../../core/time/deadline.js'
import { createVirtualClock, type VirtualClock } from '../../testing/virtual-clock.js'
import { createLoadShedder, type LoadShedder, type LoadShedderOptions } from './load-shedder.js'

const PRIORITIES = ['critical', 'high', 'normal', 'low'] as const

/** A load shedder whose pressure the test sets. */
function pressed(pressure: number, options: LoadShedderOptions = {}) {
  const clock = createVirtualClock()
  const signal = { pressure }
  const sensors = { cpu: () => signal.pressure }
  const shedder = createLoadShedder({
    cpu: 1,
    sensors,
    clock,
    random: createRandom(1),
    ...options,
  })
  return { clock, shedder, signal, sampled: () => sample(clock, shedder) }
}

/** The first call starts the sampling. */
async function sample(clock: VirtualClock, shedder: LoadShedder): Promise<void> {
  shedder.check()
  await clock.advance(100)
}

describe('load shedder pressure', () => {
  it('pressure is the highest of the signals, each divided by its limit', async () => {
    const clock = createVirtualClock()
    const shedder = createLoadShedder({
      maxQueue: 100,
      cpu: 0.8,
      memory: 0.5,
      loopUtilization: 0.9,
      loopDelayMs: 100,
      waiting: () => 60,
      sensors: {
        cpu: () => 0.4,
        memory: () => 0.1,
        loopUtilization: () => 0.63,
        loopDelayMs: () => 20,
      },
      clock,
    })
    await sample(clock, shedder)
    const { pressure, highest, signals } = shedder.snapshot()
    expect(pressure).toBeCloseTo(0.7)
    expect(highest).toBe('loopUtilization')
    expect(signals.queue).toBeCloseTo(0.6)
    expect(signals.cpu).toBeCloseTo(0.5)
    expect(signals.memory).toBeCloseTo(0.2)
    expect(signals.loopDelay).toBeCloseTo(0.2)
  })

  it('pressure is 1 when the 95th percentile reaches 90 % of slaMs', async () => {
    const clock = createVirtualClock()
    const shedder = createLoadShedder({ slaMs: 1_000, clock })
    shedder.check()
    const visits = Array.from({ length: 20 }, () => shedder.enter())
    await clock.advance(900)
    for (const visit of visits) visit?.end()
    await clock.advance(100)
    expect(shedder.pressure).toBeCloseTo(1, 1)
  })

  it('the rps signal counts the calls of the last second', async () => {
    const clock = createVirtualClock()
    const shedder = createLoadShedder({ maxRps: 100, clock })
    for (let call = 0; call < 200; call++) {
      shedder.enter()?.end()
      // check() alone does not count as a call.
      shedder.check()
      await clock.advance(10)
    }
    expect(shedder.snapshot().signals.rps).toBeCloseTo(1, 1)
  })

  it('load shedder reads its sensors ten times a second, however many calls arrive', async () => {
    let readings = 0
    const clock = createVirtualClock()
    const shedder = createLoadShedder({ cpu: 1, sensors: { cpu: () => ++readings * 0 }, clock })
    for (let call = 0; call < 10_000; call++) {
      shedder.check()
      if (call % 100 === 0) await clock.advance(10)
    }
    expect(readings).toBeGreaterThanOrEqual(9)
    expect(readings).toBeLessThanOrEqual(11)
  })

  it('an idle load shedder has no pressure and runs no timer', async () => {
    const { clock, shedder, sampled } = pressed(0.9)
    await sampled()
    expect(shedder.pressure).toBe(0.9)
    await clock.advance(2_000)
    const { fired } = clock
    await clock.advance(60_000)
    expect(clock.fired).toBe(fired)
    expect(shedder.snapshot().overload).toBe(0)
  })

  it('load shedder does not keep the process alive', async () => {
    const { clock, sampled } = pressed(0.5)
    await sampled()
    expect(clock.pending).toBe(0)
  })

  it('a sensor that throws counts as zero pressure and emits callback.failed', async () => {
    const events: SpillwayEvent[] = []
    const stop = onEvent((event) => events.push(event))
    const clock = createVirtualClock()
    const broken = () => {
      throw new Error('broken')
    }
    const shedder = createLoadShedder({ cpu: 1, sensors: { cpu: broken }, clock })
    await sample(clock, shedder)
    stop()
    expect(shedder.pressure).toBe(0)
    expect(events).toMatchObject([{ type: 'callback.failed', callback: 'sensors.cpu' }])
  })
})

describe('load shedder after a blocked event loop', () => {
  it('the first call after a blocked event loop sees the delay although no timer has fired', () => {
    let nowMs = 0
    const clock = {
      ...createVirtualClock(),
      now: () => nowMs,
      wallMs: () => nowMs,
      schedule: () => ({ cancel() {}, ref() {}, unref() {} }),
      pollTurn() {},
    }
    const shedder = createLoadShedder({
      loopDelayMs: 50,
      sensors: { loopDelayMs: () => 0 },
      priorities: true,
      clock,
    })
    expect(shedder.check()).toBeUndefined()
    nowMs = 1_000
    expect(shedder.check()).toBe('priority')
    expect(shedder.snapshot()).toMatchObject({ highest: 'loopDelay', pressure: 900 / 50 })
  })
})

describe('load shedder tiers', () => {
  const tiers = { free: 0.7, pro: 0.9 }
  const served = (shedder: LoadShedder) =>
    ['free', 'pro', 'premium'].filter((tier) => shedder.check({ tier }) === undefined)

  it.each([
    [0.7, ['free', 'pro', 'premium']],
    [0.71, ['pro', 'premium']],
    [0.9, ['pro', 'premium']],
    [0.91, ['premium']],
  ])('at a pressure of %d the load shedder serves the tiers %j', async (pressure, expected) => {
    const { shedder, sampled } = pressed(pressure, { tiers })
    await sampled()
    expect(served(shedder)).toEqual(expected)
  })

  it('tier * is the threshold of all tiers that are not listed', async () => {
    const { shedder, sampled } = pressed(0.95, { tiers: { '*': 0.9, premium: 2 } })
    await sampled()
    expect(shedder.check({ tier: 'premium' })).toBeUndefined()
    expect(shedder.check({ tier: 'unlisted' })).toBe('tier')
    expect(shedder.check()).toBe('tier')
  })
})

describe('load shedder priorities', () => {
  it.each([
    [0.79, ['critical', 'high', 'normal', 'low']],
    [0.8, ['critical', 'high', 'normal']],
    [0.85, ['critical', 'high']],
    [0.9, ['critical']],
    [5, ['critical']],
  ])('at a load of %d the load shedder serves the priorities %j', async (pressure, expected) => {
    const { shedder, sampled } = pressed(pressure, {
      priorities: true,
      weights: { high: 0, normal: 0, low: 0 },
    })
    await sampled()
    const served = PRIORITIES.filter((priority) => shedder.check({ priority }) === undefined)
    expect(served).toEqual(expected)
  })
})

describe('load shedder priorities beyond the limit', () => {
  /** Fraction of a thousand calls that is refused. */
  const partShed = (shedder: LoadShedder, priority: (typeof PRIORITIES)[number]) => {
    let shed = 0
    for (let user = 0; user < 1_000; user++) {
      if (shedder.check({ priority, user: `user-${user}` }) !== undefined) shed++
    }
    return shed / 1_000
  }

  it.each([
    [0.99, [0, 0, 0, 0]],
    [1.4, [0, 0.04, 0.2, 0.4]],
    [2, [0, 0.1, 0.5, 1]],
  ])('a load of %d refuses %j of critical, high, normal and low calls', async (pressure, parts) => {
    const { shedder, sampled } = pressed(pressure)
    await sampled()
    for (const [index, part] of parts.entries()) {
      const shed = partShed(shedder, PRIORITIES[index] as (typeof PRIORITIES)[number])
      expect(Math.abs(shed - part)).toBeLessThanOrEqual(0.04)
    }
  })

  it('at constant load the same users are refused, and more of them when it grows', async () => {
    const { clock, shedder, signal, sampled } = pressed(1.3)
    const refused = () => {
      const users = Array.from({ length: 500 }, (_, user) => `user-${user}`)
      return users.filter((user) => shedder.check({ priority: 'low', user }) !== undefined)
    }
    await sampled()
    const first = refused()
    expect(first.length).toBeGreaterThan(100)
    expect(refused()).toEqual(first)
    signal.pressure = 1.6
    await clock.advance(100)
    const more = refused()
    expect(more.length).toBeGreaterThan(first.length)
    expect(more).toEqual(expect.arrayContaining(first))
  })

  it('an hour later the load shedder refuses other users', async () => {
    const { clock, shedder, sampled } = pressed(1.5)
    const refused = async () => {
      await sampled()
      const users = Array.from({ length: 500 }, (_, user) => `user-${user}`)
      return users.filter((user) => shedder.check({ priority: 'low', user }) !== undefined)
    }
    const first = await refused()
    await clock.advance(3_600_000)
    const later = await refused()
    const same = later.filter((user) => first.includes(user))
    expect(same.length).toBeLessThan(first.length * 0.7)
  })

  it('load shedder refuses more and more while the pressure does not fall', async () => {
    const { clock, shedder, signal, sampled } = pressed(1.1)
    await sampled()
    const atFirst = partShed(shedder, 'normal')
    expect(atFirst).toBeLessThan(0.1)
    for (let tick = 0; tick < 40; tick++) await sampled()
    expect(partShed(shedder, 'normal')).toBeGreaterThan(0.9)
    // Two seconds after the overload has ended, no call is refused.
    signal.pressure = 0.3
    for (let tick = 0; tick < 20; tick++) await sampled()
    expect(partShed(shedder, 'low')).toBe(0)
    expect(clock.pending).toBe(0)
  })
})

describe('load shedder with inTime', () => {
  it('load shedder refuses a call that recent latency shows cannot meet its deadline', async () => {
    const clock = createVirtualClock()
    const shedder = createLoadShedder({ inTime: true, clock })
    shedder.check()
    const visits = Array.from({ length: 20 }, () => shedder.enter())
    await clock.advance(500)
    for (const visit of visits) visit?.end()
    await clock.advance(100)
    const check = (ms: number) => runWithDeadline(createDeadline(ms, clock), () => shedder.check())
    expect(check(400)).toBe('deadline')
    expect(check(600)).toBeUndefined()
    expect(shedder.check()).toBeUndefined()
  })
})

describe('load shedder and health checks', () => {
  it('health checks under their usual paths are critical', async () => {
    const { shedder, sampled } = pressed(100, { maxInFlight: 1, priorities: true })
    await sampled()
    shedder.enter({ priority: 'critical' })
    for (const endpoint of ['/health/live', '/healthz', '/ready']) {
      expect(shedder.check({ endpoint, priority: 'low' })).toBeUndefined()
    }
    expect(shedder.check({ endpoint: '/orders' })).toBe('inFlight')
  })

  it('option `critical` sets the paths of the health checks', async () => {
    const { shedder, sampled } = pressed(100, { priorities: true, critical: ['/alive'] })
    await sampled()
    expect(shedder.check({ endpoint: '/alive' })).toBeUndefined()
    expect(shedder.check({ endpoint: '/health' })).toBe('priority')
  })
})

describe('load shedder run() and enter()', () => {
  const shedders: LoadShedder[] = []
  afterEach(() => {
    for (const shedder of shedders.splice(0)) shedder.close()
  })

  it('load shedder admits maxInFlight calls and refuses the next with SHED and its numbers', async () => {
    const shedder = createLoadShedder({ name: 'web', maxInFlight: 2 })
    shedders.push(shedder)
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const inside = [shedder.run(() => held), shedder.run(() => held)]
    await expect(shedder.run(() => 'never')).rejects.toMatchObject({
      code: 'SHED',
      stage: 'shed',
      status: 503,
      details: { name: 'web', reason: 'inFlight', pressure: 1, signal: 'inFlight' },
      message: 'web: shed with 2 calls in flight (maxInFlight: 2); raise it or add pods',
    })
    release()
    await Promise.all(inside)
    expect(await shedder.run(() => 'now')).toBe('now')
    expect(shedder.snapshot()).toMatchObject({ inFlight: 0, admitted: 3, shed: 1 })
  })

  it('a call leaves the in-flight count exactly once, however it ends', async () => {
    const shedder = createLoadShedder({ maxInFlight: 5 })
    shedders.push(shedder)
    const failing = () => {
      throw new Error('at once')
    }
    await expect(shedder.run(failing)).rejects.toThrow('at once')
    await expect(shedder.run(async () => failing())).rejects.toThrow('at once')
    const visit = shedder.enter()
    visit?.end()
    visit?.end()
    expect(shedder.snapshot().inFlight).toBe(0)
  })

  it('load shedder emits shedder.refused with the reason, tier and priority', () => {
    const events: SpillwayEvent[] = []
    const stop = onEvent((event) => events.push(event))
    const shedder = createLoadShedder({ name: 'web', maxInFlight: 1 })
    shedders.push(shedder)
    shedder.enter()
    shedder.enter({ tier: 'free', priority: 'low' })
    stop()
    expect(events).toMatchObject([
      { type: 'shedder.refused', name: 'web', reason: 'inFlight', tier: 'free', priority: 'low' },
    ])
  })

  it('a closed load shedder refuses every call and runs no timer', async () => {
    const { clock, shedder, sampled } = pressed(0.1)
    await sampled()
    shedder.close()
    expect(shedder.enter()).toBeUndefined()
    await expect(shedder.run(() => 1)).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
    const { fired } = clock
    await clock.advance(10_000)
    expect(clock.fired).toBe(fired)
  })

  it('load shedder reads CPU, memory and event loop figures of this process', async () => {
    const shedder = createLoadShedder({
      cpu: 1,
      memory: 1,
      loopUtilization: 1,
      loopDelayMs: 1_000,
      sampleMs: 20,
    })
    shedders.push(shedder)
    shedder.check()
    const endMs = performance.now() + 100
    while (performance.now() < endMs);
    shedder.check()
    const { signals } = shedder.snapshot()
    expect(signals.loopUtilization).toBeGreaterThan(0.5)
    expect(signals.cpu).toBeGreaterThan(0)
    expect(signals.memory).toBeGreaterThan(0)
    expect(signals.memory).toBeLessThan(1)
    expect(signals.loopDelay).toBeGreaterThan(0.05)
  })
})

it('loopUtilization detects an event loop busy with many short tasks, which loopDelayMs does not', async () => {
  const shedder = createLoadShedder({ loopUtilization: 1, loopDelayMs: '10s', sampleMs: 50 })
  const giveUpMs = performance.now() + 60_000
  const busy = () => {
    const untilMs = performance.now() + 2
    while (performance.now() < untilMs);
    shedder.check()
  }
  let seen = shedder.snapshot()
  // A thread that waits for a core counts as idle, so a sample of a busy machine may be lower.
  while (!((seen.signals.loopUtilization ?? 0) > 0.9) && performance.now() < giveUpMs) {
    busy()
    await new Promise<void>((resolve) => setImmediate(resolve))
    seen = shedder.snapshot()
  }
  const { signals, highest } = seen
  shedder.close()
  expect(signals.loopUtilization).toBeGreaterThan(0.9)
  expect(highest).toBe('loopUtilization')
})

it.each([
  [{ maxQue: 5 }, "loadShedder.maxQue: unknown option; did you mean 'maxQueue'?"],
  [{ cpu: 80 }, 'loadShedder.cpu: must be a number from 0.01 to 1, got 80'],
  [
    { tiers: { free: 'most' } },
    'loadShedder.tiers.free: must be a number of at least 0, got "most"',
  ],
  [{ priorities: { critical: 1 } }, 'loadShedder.priorities.critical: unknown option'],
  [{ weights: { hihg: 1 } }, "loadShedder.weights.hihg: unknown option; did you mean 'high'?"],
  [{ sensors: { cpu: 1 } }, 'loadShedder.sensors.cpu: must be a function, got 1'],
])('createLoadShedder rejects %j with a message that names the option', (options, message) => {
  expect(() => createLoadShedder(options as never)).toThrow(message)
})

it('load shedder rejects an unknown priority and suggests the right one', async () => {
  const shedder = createLoadShedder({ maxInFlight: 1 })
  const wrong = { priority: 'hihg' as never }
  await expect(shedder.run(() => 1, wrong)).rejects.toThrow("did you mean 'high'?")
  expect(() => shedder.check(wrong)).toThrow("did you mean 'high'?")
})

describe('a signal that is no number', () => {
  it.each([Number.NaN, Infinity, -1, undefined])('sensor value %s is read as 0', async (value) => {
    const clock = createVirtualClock()
    let cpu = value as number
    const shedder = createLoadShedder({ cpu: 0.5, sensors: { cpu: () => cpu }, clock })
    shedder.enter()
    await clock.advance(1_000)
    expect(shedder.snapshot()).toMatchObject({ pressure: 0, overload: 0, signals: { cpu: 0 } })
    cpu = 1
    shedder.enter()
    await clock.advance(1_000)
    expect(shedder.pressure).toBe(2)
    shedder.close()
  })

  it.each([Number.NaN, Infinity, -1, undefined])('queue length %s is read as 0', (value) => {
    let waiting = value as number
    const shedder = createLoadShedder({
      maxQueue: 2,
      waiting: () => waiting,
      clock: createVirtualClock(),
    })
    expect(shedder.check()).toBeUndefined()
    expect(shedder.pressure).toBe(0)
    waiting = 3
    expect(shedder.check()).toBeDefined()
    shedder.close()
  })
})
