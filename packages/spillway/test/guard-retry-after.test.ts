/** The retryAfterMs of refusals, and the signal that each refusal names. */
import { describe, expect, it } from 'vitest'
import type { SpillwayError } from '../src/core/errors.js'
import { sleep } from '../src/core/time/sleep.js'
import type { GuardOptions } from '../src/guard/options.js'
import type { RunOptions } from '../src/guard/run-options.js'
import { createCallQueue } from '../src/http/call-queue.js'
import { createBulkhead } from '../src/local/bulkhead/bulkhead.js'
import { createLoadShedder } from '../src/local/load-shedder/load-shedder.js'
import { createJobQueue } from '../src/shared/job-queue/create-job-queue.js'
import { memoryStore } from '../src/store/memory/memory-store.js'
import { createVirtualClock } from '../src/testing/virtual-clock.js'
import { createGuardPod, EVERYWHERE } from './guard-pod.js'

const withoutJitter = () => 0.5
const never = () => new Promise<never>(() => {})

function createPod(options: GuardOptions, where?: (typeof EVERYWHERE)[number]) {
  const pod = createGuardPod(options, where === undefined ? {} : { where })
  const refused = async (run: RunOptions = {}): Promise<SpillwayError> => {
    const call = pod.run(never, run)
    await pod.clock.advance(0)
    return call.error as SpillwayError
  }
  return { ...pod, refused }
}

describe('retryAfterMs of SHED', () => {
  it('guard asks shed callers to wait 1 to 3 seconds, and twice as long after 10 seconds of shedding', async () => {
    const { clock, run, refused } = createPod({
      shed: { maxQueue: 1 },
      queue: { size: 10, timeoutMs: '10m', targetMs: '10m' },
      concurrency: { limit: 1 },
    })
    for (let call = 0; call < 2; call++) run(never)
    const waits: number[] = []
    for (let second = 0; second < 45; second++) {
      waits.push((await refused()).retryAfterMs as number)
      await clock.advance(1_000)
    }
    const within = (from: number, to: number, shortest: number, longest: number) => {
      const some = waits.slice(from, to)
      expect(new Set(some).size).toBeGreaterThan(1)
      expect(Math.min(...some)).toBeGreaterThanOrEqual(shortest)
      expect(Math.max(...some)).toBeLessThanOrEqual(longest)
    }
    within(0, 10, 1_000, 3_000)
    within(10, 20, 2_000, 6_000)
    within(20, 30, 4_000, 12_000)
    within(30, 40, 8_000, 24_000)
    within(40, 45, 16_000, 30_000)
  })

  it('call that a standing queue drops is asked to wait 1 to 3 seconds, and its message names queue.targetMs', async () => {
    const { clock, run } = createPod({
      queue: { size: 100, timeoutMs: '1m', targetMs: 50, intervalMs: 100 },
      concurrency: { limit: 1 },
    })
    const calls = Array.from({ length: 60 }, () => run(() => sleep(clock, 10)))
    await clock.advance(2_000)
    const shed = calls
      .map(({ error }) => error as SpillwayError)
      .filter((error) => error?.code === 'SHED')
    expect(shed.length).toBeGreaterThan(0)
    for (const { retryAfterMs, message, details } of shed) {
      expect(retryAfterMs).toBeGreaterThanOrEqual(1_000)
      expect(retryAfterMs).toBeLessThanOrEqual(3_000)
      expect(details.targetMs).toBe(50)
      expect(message).toMatch(/because the delay stays above queue\.targetMs \(50 ms\)$/)
    }
  })
})

describe('retryAfterMs of a full or slow queue', () => {
  for (const where of EVERYWHERE) {
    it(`guard with a ${where} store asks for the drain time of its full queue, within 20 %`, async () => {
      const { clock, run, refused } = createPod(
        {
          queue: { size: 30, timeoutMs: '10m', targetMs: '10m' },
          concurrency: { limit: 3 },
          limits: [{ limit: 100_000, windowMs: '1m' }],
        },
        where,
      )
      const work = () => sleep(clock, 500)
      // Calls that never waited are enough to know how long calls take.
      run(work)
      await clock.advance(600)
      for (let call = 0; call < 33; call++) run(work)
      await clock.advance(10)
      const { code, retryAfterMs } = await refused()
      expect(code).toBe('QUEUE_FULL')
      const drainMs = (30 * 500) / 3
      expect(retryAfterMs).toBeGreaterThanOrEqual(drainMs * 0.79)
      expect(retryAfterMs).toBeLessThanOrEqual(drainMs * 1.21)
    })
  }

  it('guard asks a call that waited too long for the drain time of the calls that still wait', async () => {
    const { clock, run } = createPod({
      queue: { size: 100, timeoutMs: 1_000, targetMs: '10m' },
      concurrency: { limit: 2 },
    })
    const calls = Array.from({ length: 60 }, () => run(() => sleep(clock, 100)))
    // The second half comes later and waits still when the first half gives up.
    await clock.advance(500)
    for (let call = 0; call < 40; call++) run(() => sleep(clock, 100))
    await clock.advance(520)
    const late = calls
      .map(({ error }) => error as SpillwayError)
      .filter((error) => error?.code === 'QUEUE_TIMEOUT')
    expect(late.length).toBeGreaterThan(30)
    for (const { retryAfterMs, details } of late) {
      const drainMs = (Number(details.waiting) * 100) / 2
      expect(retryAfterMs).toBeGreaterThanOrEqual(drainMs * 0.79)
      expect(retryAfterMs).toBeLessThanOrEqual(drainMs * 1.21)
    }
  })

  it('guard asks an evicted call for the drain time', async () => {
    const { clock, run } = createPod({
      queue: { size: 10, timeoutMs: '10m', targetMs: '10m' },
      concurrency: { limit: 1 },
    })
    run(() => sleep(clock, 400))
    await clock.advance(400)
    run(() => sleep(clock, 400))
    const low = Array.from({ length: 10 }, () => run(never, { priority: 'low' }))
    run(never, { priority: 'high' })
    await clock.advance(0)
    const evicted = low.map(({ error }) => error as SpillwayError).find((error) => error)
    expect(evicted).toMatchObject({ code: 'QUEUE_FULL', details: { why: 'displaced' } })
    expect(evicted?.retryAfterMs).toBeGreaterThanOrEqual(9 * 400 * 0.79)
    expect(evicted?.retryAfterMs).toBeLessThanOrEqual(10 * 400 * 1.21)
  })

  it('guard whose queue waits for the pace asks for the drain time at the rate of starts', async () => {
    const { clock, run, refused } = createPod({
      queue: { size: 20, timeoutMs: '10m', targetMs: '10m' },
      pace: { limit: 2, windowMs: 1_000, burst: 1 },
    })
    for (let call = 0; call < 21; call++) run(() => sleep(clock, 1))
    await clock.advance(5_000)
    for (let call = 0; call < 20; call++) run(() => sleep(clock, 1))
    const { code, retryAfterMs } = await refused()
    expect(code).toBe('QUEUE_FULL')
    expect(retryAfterMs).toBeGreaterThanOrEqual(10_000 * 0.75)
    expect(retryAfterMs).toBeLessThanOrEqual(10_000 * 1.25)
  })

  it('guard without a queue asks for the time until a slot is free', async () => {
    const { clock, run, refused } = createPod({ concurrency: { limit: 2 } })
    run(() => sleep(clock, 4_000))
    await clock.advance(4_000)
    for (let call = 0; call < 2; call++) run(never)
    const { code, stage, retryAfterMs } = await refused()
    expect({ code, stage }).toEqual({ code: 'QUEUE_FULL', stage: 'concurrency' })
    expect(retryAfterMs).toBeGreaterThanOrEqual(2_000 * 0.79)
    expect(retryAfterMs).toBeLessThanOrEqual(2_000 * 1.21)
  })

  it('call that leaves the queue at its deadline is not asked to come back', async () => {
    const { clock, run } = createPod({ queue: { size: 5 }, concurrency: { limit: 1 } })
    run(never)
    const late = run(never, { timeoutMs: 100 })
    await clock.advance(200)
    expect(late.error).toMatchObject({ code: 'DEADLINE_EXCEEDED', retryAfterMs: undefined })
  })

  it('createCallQueue asks for the drain time of its queue, and for 1 to 3 seconds if it drops a call', async () => {
    const clock = createVirtualClock()
    const queue = createCallQueue({
      ...{ limit: 2, size: 20, timeoutMs: '1m', targetMs: '1m', clock, random: withoutJitter },
    })
    const errors: SpillwayError[] = []
    const send = (ms: number) =>
      void queue.run(() => sleep(clock, ms)).catch((error) => errors.push(error))
    send(300)
    await clock.advance(300)
    for (let call = 0; call < 23; call++) send(300)
    await clock.advance(0)
    expect(errors).toMatchObject([{ code: 'QUEUE_FULL', retryAfterMs: (20 * 300) / 2 }])
    const dropping = createCallQueue({
      ...{ limit: 1, size: 100, timeoutMs: '1m', targetMs: 20, clock, random: withoutJitter },
    })
    for (let call = 0; call < 60; call++) {
      void dropping.run(() => sleep(clock, 10)).catch((error) => errors.push(error))
    }
    await clock.advance(500)
    expect(errors.at(-1)).toMatchObject({ code: 'SHED', retryAfterMs: 2_000 })
  })

  it('bulkhead asks for the drain time of its queue', async () => {
    const clock = createVirtualClock()
    const bulkhead = createBulkhead({
      ...{ limit: 4, queue: { size: 20, timeoutMs: 1_000 }, clock, random: withoutJitter },
    })
    const errors: SpillwayError[] = []
    const send = () =>
      void bulkhead.run(() => sleep(clock, 600)).catch((error) => errors.push(error))
    send()
    await clock.advance(600)
    for (let call = 0; call < 25; call++) send()
    await clock.advance(0)
    expect(errors).toMatchObject([{ code: 'QUEUE_FULL', retryAfterMs: (20 * 600) / 4 }])
    await clock.advance(1_000)
    expect(errors.at(-1)).toMatchObject({ code: 'QUEUE_TIMEOUT' })
    expect(errors.at(-1)?.retryAfterMs).toBeGreaterThanOrEqual(100)
  })
})

describe('retryAfterMs of a full job queue', () => {
  it('full job queue asks callers to wait 8 to 12 seconds, each for another time', async () => {
    const store = memoryStore({ clock: createVirtualClock() })
    const queue = createJobQueue({ store, name: 'mails', guard: 'mail', maxSize: 1 })
    await queue.add('first')
    const waits: number[] = []
    for (let call = 0; call < 20; call++) {
      const refused = (await queue.add('next').catch((error: unknown) => error)) as SpillwayError
      expect(refused.code).toBe('QUEUE_FULL')
      waits.push(refused.retryAfterMs as number)
    }
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(8_000)
    expect(Math.max(...waits)).toBeLessThanOrEqual(12_000)
    expect(new Set(waits).size).toBeGreaterThan(1)
  })
})

describe('message of SHED', () => {
  const signals = { cpu: 0.6, memory: 0.2, loopUtilization: 0.3, loopDelayMs: 20 }
  const sensors = {
    cpu: () => signals.cpu,
    memory: () => signals.memory,
    loopUtilization: () => signals.loopUtilization,
    loopDelayMs: () => signals.loopDelayMs,
  }
  const cases: [what: string, high: Partial<typeof signals>, shed: object, text: string][] = [
    ['CPU', { cpu: 0.76 }, { cpu: 0.8 }, 'CPU at 0.76 (shed.cpu: 0.8)'],
    ['memory', { memory: 0.88 }, { memory: 0.9 }, 'memory at 0.88 (shed.memory: 0.9)'],
    [
      'event loop utilization',
      { loopUtilization: 0.9 },
      { loopUtilization: 0.95 },
      'event loop busy for 0.9 of the time (shed.loopUtilization: 0.95)',
    ],
    [
      'event loop delay',
      { loopDelayMs: 95 },
      { loopDelayMs: 100 },
      'event loop delay 95 ms (shed.loopDelayMs: 100 ms)',
    ],
  ]
  for (const [what, high, shed, text] of cases) {
    it(`message of SHED names the signal ${what}, its value, its threshold and the option`, async () => {
      Object.assign(signals, { cpu: 0, memory: 0, loopUtilization: 0, loopDelayMs: 0 }, high)
      const { clock, quick, refused } = createPod({ shed: { ...shed, sensors, priorities: true } })
      quick({ priority: 'critical' })
      await clock.advance(100)
      const { message } = await refused({ priority: 'low' })
      expect(message).toMatch(
        /shed by priority, pressure 0\.\d+ reached shed\.priorities\.low \(0\.8\): /,
      )
      expect(message).toContain(text)
    })
  }

  it('message of SHED names the tier, its threshold and the signal behind the pressure', async () => {
    Object.assign(signals, { cpu: 0.6, memory: 0 })
    const tiers = { free: 0.7, '*': 0.74 }
    const { clock, quick, refused } = createPod({ shed: { cpu: 0.8, sensors, tiers } })
    quick({ priority: 'critical' })
    await clock.advance(100)
    const free = await refused({ tier: 'free' })
    expect(free.message).toContain(
      'shed by tier, pressure 0.75 is above shed.tiers.free (0.7): CPU at 0.6 (shed.cpu: 0.8)',
    )
    expect((await refused({ tier: 'new' })).message).toContain('above shed.tiers.* (0.74)')
  })

  it('message of SHED names the overload, the weight of the priority and the signal', async () => {
    signals.cpu = 1
    const { clock, quick, refused } = createPod({ shed: { cpu: 0.25, sensors } })
    quick({ priority: 'critical' })
    await clock.advance(100)
    const { message, details } = await refused({ priority: 'low' })
    expect(message).toContain(
      'shed a share of the calls, overload 3 times shed.weights.low (1): CPU at 1 (shed.cpu: 0.25)',
    )
    expect(details).toMatchObject({ reason: 'overload', signal: 'cpu', value: 1, threshold: 0.25 })
  })

  it('message of SHED names the calls in flight, the queue length, or that there is too little time', async () => {
    const inFlight = createPod({ shed: { maxInFlight: 1 } })
    inFlight.run(never)
    expect((await inFlight.refused()).message).toContain(
      'shed with 1 call in flight (shed.maxInFlight: 1)',
    )
    const queue = createPod({
      ...{ shed: { maxQueue: 1 }, queue: { size: 5 }, concurrency: { limit: 1 } },
    })
    for (let call = 0; call < 2; call++) queue.run(never)
    expect((await queue.refused()).message).toContain('shed at queue length 1 (shed.maxQueue: 1)')
    const slow = createPod({ shed: { inTime: true } })
    for (let call = 0; call < 20; call++) slow.run(() => sleep(slow.clock, 400))
    await slow.clock.advance(500)
    const { message } = await slow.refused({ timeoutMs: 100 })
    expect(message).toMatch(
      /shed, because the call has 100 ms left and would take about 4\d\d(\.\d)? ms behind 0 waiting calls \(shed\.inTime\)$/,
    )
  })

  it('refusal of a load shedder for servers names its own options', async () => {
    const clock = createVirtualClock()
    const shedder = createLoadShedder({ name: 'web', maxInFlight: 1, clock, random: withoutJitter })
    const first = shedder.admit()
    expect('end' in first).toBe(true)
    expect(shedder.admit()).toMatchObject({
      message: 'web: shed with 1 call in flight (maxInFlight: 1); raise it or add pods',
      retryAfterMs: 2_000,
    })
    if ('end' in first) first.end()
    expect('end' in shedder.admit()).toBe(true)
    shedder.close()
    expect(shedder.admit()).toMatchObject({ code: 'SHUTTING_DOWN', retryAfterMs: undefined })
  })
})
