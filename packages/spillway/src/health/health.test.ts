import { describe, expect, it } from 'vitest'
import { createSpillway } from '../guard/spillway.js'
import { memoryStore } from '../store/memory/memory-store.js'
import { createVirtualClock } from '../testing/virtual-clock.js'
import { createHealth, type HealthOptions } from './health.js'

function healthOn(options: HealthOptions = {}) {
  const clock = createVirtualClock()
  return { clock, health: createHealth({ clock, ...options }) }
}

/** Advances by nothing, which settles what is due now. */
const now = 0

describe('health report', () => {
  it('health is healthy and ready while every check passes', async () => {
    const { health } = healthOn()
    health.register('database', async () => ({ details: { rows: 3 } }))
    expect(await health.ready()).toEqual({
      status: 'healthy',
      ready: true,
      reason: undefined,
      timestamp: expect.any(String),
      checks: [{ name: 'database', status: 'healthy', latencyMs: 0, details: { rows: 3 } }],
    })
  })

  it('health reports of every level say when they were made', async () => {
    const { clock, health } = healthOn()
    await clock.advance(90_000)
    for (const level of ['live', 'ready', 'deep'] as const) {
      const { timestamp } = await health[level]()
      expect(timestamp).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/)
      expect(Date.parse(timestamp)).toBe(clock.wallMs())
    }
  })

  it('each check runs at its own level, and all of them at level deep', async () => {
    const { health } = healthOn()
    for (const level of ['live', 'ready', 'deep'] as const) {
      health.register(level, () => undefined, { level })
    }
    const namesOf = async (level: 'live' | 'ready' | 'deep') =>
      (await health[level]()).checks.map(({ name }) => name)
    expect(await namesOf('live')).toEqual(['live'])
    expect(await namesOf('ready')).toEqual(['ready'])
    expect(await namesOf('deep')).toEqual(['live', 'ready', 'deep'])
  })

  it('checks run concurrently, so the slowest one decides the duration', async () => {
    const { clock, health } = healthOn()
    for (const name of ['a', 'b', 'c']) {
      health.register(name, () => new Promise((done) => clock.schedule(400, () => done(true))))
    }
    const asked = health.ready()
    await clock.advance(400)
    expect((await asked).checks.map(({ latencyMs }) => latencyMs)).toEqual([400, 400, 400])
  })

  it.each([
    ['live', 1_000],
    ['ready', 5_000],
    ['deep', 30_000],
  ] as const)(
    'a %s report takes at most %i ms, even if a check hangs, throws or is slow',
    async (level, mostMs) => {
      const { clock, health } = healthOn()
      health.register('hangs', () => new Promise<never>(() => {}), { level })
      health.register('throws', () => Promise.reject(new Error('no route')), { level })
      health.register(
        'throws-at-once',
        () => {
          throw new TypeError('a bug')
        },
        { level },
      )
      const tenSeconds = () =>
        new Promise<undefined>((done) => clock.schedule(10_000, () => done(undefined)))
      health.register('slow', tenSeconds, { level })
      health.register('quick', () => true, { level })
      let report: Awaited<ReturnType<typeof health.live>> | undefined
      void health[level]().then((each) => {
        report = each
      })
      await clock.advance(mostMs - 1)
      expect(report).toBeUndefined()
      await clock.advance(1)
      expect(report?.status).toBe('unhealthy')
      const byName = Object.fromEntries((report?.checks ?? []).map((each) => [each.name, each]))
      expect(byName.hangs).toMatchObject({
        status: 'unhealthy',
        error: `no answer within ${mostMs} ms`,
      })
      expect(byName.throws).toMatchObject({ latencyMs: 0, error: 'no route' })
      expect(byName['throws-at-once']).toMatchObject({ latencyMs: 0, error: 'a bug' })
      expect(byName.quick).toEqual({ name: 'quick', status: 'healthy', latencyMs: 0 })
      expect(byName.slow?.status).toBe(mostMs > 10_000 ? 'healthy' : 'unhealthy')
      // The hanging check is known now, so the second report does not wait for it.
      const again = health[level]()
      await clock.advance(mostMs > 10_000 ? 10_000 : now)
      expect((await again).checks[0]?.error).toBe(`still runs, for ${mostMs} ms`)
    },
  )

  it('timeoutMs of a check limits how long it delays the report', async () => {
    const { clock, health } = healthOn()
    let aborted = false
    health.register(
      'hangs',
      (signal) => {
        signal.addEventListener('abort', () => {
          aborted = true
        })
        return new Promise<never>(() => {})
      },
      { timeoutMs: 50, critical: false },
    )
    const asked = health.ready()
    await clock.advance(50)
    expect(await asked).toMatchObject({ status: 'degraded', ready: true })
    expect(aborted).toBe(true)
  })

  it('a check that is still running is not started again until it has ended', async () => {
    const { clock, health } = healthOn()
    let begun = 0
    let release = () => {}
    health.register('hangs', () => {
      begun++
      return new Promise<undefined>((done) => {
        release = () => done(undefined)
      })
    })
    const first = health.ready()
    await clock.advance(5_000)
    await first
    await health.ready()
    expect(begun).toBe(1)
    release()
    await clock.advance(now)
    const third = health.ready()
    release()
    await clock.advance(now)
    release()
    expect((await third).status).toBe('healthy')
    expect(begun).toBe(2)
  })

  it('concurrent requests share one report', async () => {
    const { health } = healthOn()
    let asked = 0
    health.register('counted', () => void asked++)
    await Promise.all([health.ready(), health.ready(), health.ready()])
    expect(asked).toBe(1)
  })

  it('the worst check decides the status, and non-critical checks only degrade it', async () => {
    const { health } = healthOn()
    health.register('cache', () => false, { critical: false })
    expect((await health.ready()).status).toBe('degraded')
    health.register('slow', () => 'degraded')
    expect((await health.ready()).ready).toBe(true)
    health.register('database', () => ({ status: 'unhealthy', details: 'read-only' }))
    expect(await health.ready()).toMatchObject({
      status: 'unhealthy',
      ready: false,
      reason: 'unhealthy',
    })
    expect((await health.live()).status).toBe('healthy')
  })

  it('health is not ready until warmUpMs has passed and warmUp is done', async () => {
    let warm = () => {}
    const { clock, health } = healthOn({
      warmUpMs: 100,
      warmUp: () =>
        new Promise<void>((done) => {
          warm = done
        }),
    })
    await clock.advance(100)
    expect(await health.ready()).toMatchObject({ ready: false, reason: 'warming-up' })
    expect((await health.live()).status).toBe('healthy')
    warm()
    await clock.advance(now)
    expect((await health.ready()).ready).toBe(true)
  })

  it('a failed warm-up is reported and health stays not ready', async () => {
    const { clock, health } = healthOn({ warmUp: () => Promise.reject(new Error('no cache')) })
    await clock.advance(now)
    const report = await health.ready()
    expect(report).toMatchObject({ ready: false, reason: 'warming-up' })
    expect(report.checks[0]).toMatchObject({ name: 'warm-up', error: 'no cache' })
  })

  it('health is not ready after drain() or while the spillway is closing', async () => {
    const { health } = healthOn()
    health.drain()
    expect(await health.ready()).toMatchObject({ ready: false, reason: 'draining' })
    const clock = createVirtualClock()
    const spillway = createSpillway({ clock })
    const other = createHealth({ spillway, clock })
    expect((await other.ready()).ready).toBe(true)
    await spillway.close()
    expect((await other.ready()).reason).toBe('draining')
  })

  it('health is not ready under sustained overload, while a short peak has no effect', async () => {
    let pressure = 0
    const { clock, health } = healthOn({
      overload: { pressure: { pressure: () => pressure }, forMs: '10s' },
    })
    const readyAfter = async (ms: number) => {
      await clock.advance(ms)
      return (await health.ready()).ready
    }
    pressure = 1.2
    expect(await readyAfter(9_000)).toBe(true)
    pressure = 0.5
    expect(await readyAfter(2_000)).toBe(true)
    pressure = 1.2
    expect(await readyAfter(12_000)).toBe(false)
    expect((await health.ready()).reason).toBe('overloaded')
    pressure = 0.5
    expect(await readyAfter(2_000)).toBe(false)
    expect(await readyAfter(5_000)).toBe(true)
    health.close()
  })

  it('health rejects invalid options and duplicate check names', () => {
    const { health } = healthOn()
    health.register('database', () => undefined)
    expect(() => health.register('database', () => undefined)).toThrow(
      'is the name of another check',
    )
    const slow = { level: 'live', timeoutMs: '2s' } as const
    expect(() => health.register('slow', () => undefined, slow)).toThrow(
      "health.register(slow).timeoutMs: must be at most 1000 ms for level 'live'",
    )
    expect(() => createHealth({ warmup: 1 } as never)).toThrow("did you mean 'warmUp'?")
  })
})

describe('fleet part of the health report', () => {
  const options = {
    breaker: { consecutiveFailures: 50, openMs: '30s' },
    limits: [{ unit: 'requests', limit: 100, windowMs: '1m' }],
  } as const

  function twoPods() {
    const clock = createVirtualClock()
    const store = memoryStore({ clock })
    const pods = ['a', 'b'].map((pod) => createSpillway({ store, pod, clock }))
    const [a, b] = pods.map((pod) => pod.guard('vendor', options))
    const health = createHealth({ spillway: pods[1]!, clock })
    return { clock, a: a!, b: b!, health }
  }
  const fail = () => Promise.reject(new Error('503'))

  it('fleet report contains the figures of other pods', async () => {
    const { clock, a, health } = twoPods()
    for (let i = 0; i < 30; i++) await a.run(fail).catch(() => {})
    for (let i = 0; i < 5; i++) await a.run(() => 1, { lane: 'other' })
    await clock.advance(6_000)
    const { fleet, status } = await health.ready()
    expect(status).toBe('healthy')
    expect(fleet).toMatchObject({ store: 'memory', livePods: 2 })
    const [guard] = fleet?.guards ?? []
    expect(guard?.requestsLastMinute).toBeGreaterThanOrEqual(35)
    expect(guard?.breakers).toMatchObject([
      { lane: 'default', state: 'closed', failures: 30, openUntil: undefined },
      { lane: 'other', state: 'closed', failures: 0 },
    ])
    expect(guard?.limits).toMatchObject([
      { lane: 'default', id: 'requests', limit: 100, used: 30, available: 70 },
      { lane: 'other', used: 5, available: 95 },
    ])
  })

  it('an open breaker is reported with its end time and makes health degraded but ready', async () => {
    const { clock, a, health } = twoPods()
    for (let i = 0; i < 50; i++) await a.run(fail).catch(() => {})
    const openUntil = new Date(clock.wallMs() + 30_000).toISOString()
    const report = await health.ready()
    expect(report).toMatchObject({ status: 'degraded', ready: true })
    expect(report.checks[0]?.details).toEqual({
      store: 'memory',
      open: [{ guard: 'vendor', lane: 'default', state: 'open' }],
    })
    expect(report.fleet?.guards[0]?.breakers[0]).toMatchObject({ state: 'open', openUntil })
    await clock.advance(30_000)
    expect((await health.ready()).fleet?.guards[0]?.breakers[0]?.state).toBe('half-open')
  })
})
