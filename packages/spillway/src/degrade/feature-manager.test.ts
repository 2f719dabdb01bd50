import { describe, expect, it } from 'vitest'
import { onEvent, type SpillwayEvent } from '../core/events.js'
import { createSpillway } from '../guard/spillway.js'
import { createVirtualClock } from '../testing/virtual-clock.js'
import type { DependencyStatus } from './dependencies.js'
import { createFeatureManager } from './feature-manager.js'
import type { FeatureManagerOptions } from './feature-options.js'
import { createPodLoad } from './pod-load.js'

const FEATURES = {
  pay: { importance: 'critical' },
  browse: { importance: 'high' },
  review: { importance: 'normal' },
  count: { importance: 'low' },
  sparkle: { importance: 'optional' },
} as const

function managed(options: FeatureManagerOptions = {}) {
  const clock = createVirtualClock()
  const load = { cpu: 0.1, memory: 0.1 }
  const manager = createFeatureManager({ features: FEATURES, load: () => load, clock, ...options })
  const on = () =>
    manager
      .snapshot()
      .features.filter((each) => each.on)
      .map(({ name }) => name)
  const after = async (ms: number) => {
    await clock.advance(ms)
    return on()
  }
  return { clock, load, manager, on, after }
}

describe('feature manager under load', () => {
  it.each(['cpu', 'memory'] as const)(
    'features switch off by importance as %s grows, and critical ones stay on',
    async (kind) => {
      const { load, manager, after } = managed()
      expect(await after(1_000)).toEqual(['pay', 'browse', 'review', 'count', 'sparkle'])
      expect(manager.level).toBe('full')
      load[kind] = 0.71
      expect(await after(1_000)).toEqual(['pay', 'browse', 'review'])
      expect(manager.level).toBe('no-analytics')
      load[kind] = 0.81
      expect(await after(1_000)).toEqual(['pay', 'browse'])
      expect(manager.level).toBe('read-only')
      load[kind] = 0.99
      expect(await after(1_000)).toEqual(['pay'])
      expect(manager.level).toBe('cached')
      manager.close()
    },
  )

  it('features also follow the pressure of a load shedder', async () => {
    const shedder = { pressure: 0 }
    const { manager, after } = managed({ pressure: shedder })
    shedder.pressure = 0.95
    expect(await after(1_000)).toEqual(['pay'])
    expect(manager.snapshot().load.pressure).toBe(0.95)
  })

  it('features switch on again after holdMs below the threshold', async () => {
    const { load, after } = managed({ holdMs: '5s' })
    load.cpu = 0.75
    await after(1_000)
    load.cpu = 0.3
    expect(await after(4_000)).not.toContain('count')
    expect(await after(3_000)).toContain('count')
  })

  it('features do not flap around a threshold', async () => {
    const { clock, load, manager } = managed({ holdMs: '5s', margin: 0.05 })
    const changes: string[] = []
    const stop = onEvent((event: SpillwayEvent) => {
      if (event.type.startsWith('feature.')) changes.push(event.type)
    })
    for (let i = 0; i < 120; i++) {
      // Below the threshold, but not by the margin or not for long enough.
      load.cpu = i % 3 === 0 ? 0.72 : i % 3 === 1 ? 0.68 : 0.5
      await clock.advance(1_000)
    }
    stop()
    manager.close()
    expect(changes).toEqual(['feature.off', 'feature.off'])
  })

  it('thresholds of the feature manager can be set', async () => {
    const { load, after } = managed({ thresholds: { low: 0.3, normal: 0.95, high: 0.99 } })
    load.cpu = 0.4
    expect(await after(1_000)).toEqual(['pay', 'browse', 'review'])
  })

  it('createPodLoad reads CPU and memory of this process', () => {
    let nowMs = 0
    const read = createPodLoad(() => nowMs)
    const until = performance.now() + 30
    while (performance.now() < until);
    nowMs = 30
    const { cpu, memory } = read()
    expect(cpu).toBeGreaterThan(0.1)
    expect(cpu).toBeLessThanOrEqual(1)
    expect(memory).toBeGreaterThan(0)
    expect(memory).toBeLessThan(1)
  })
})

describe('features and their dependencies', () => {
  function shop() {
    const status: Record<string, DependencyStatus> = {
      recs: 'healthy',
      stats: 'healthy',
      db: 'healthy',
    }
    const dependency = (name: string) => () => status[name] as DependencyStatus
    return {
      status,
      ...managed({
        features: {
          page: { importance: 'critical', dependsOn: ['db'] },
          recommendations: { importance: 'optional', dependsOn: ['recs'] },
          views: { importance: 'low', dependsOn: ['stats', 'db'], offWhen: 'degraded' },
        },
        dependencies: {
          recs: dependency('recs'),
          stats: dependency('stats'),
          db: dependency('db'),
        },
        holdMs: '10s',
      }),
    }
  }

  it('a feature is off as long as its dependency is unavailable', async () => {
    const { status, manager, after } = shop()
    status.recs = 'unavailable'
    expect(await after(1_000)).toEqual(['page', 'views'])
    expect(manager.level).toBe('no-extras')
    expect(manager.snapshot().features[1]).toMatchObject({
      on: false,
      because: 'recs is unavailable',
    })
    status.recs = 'healthy'
    expect(await after(5_000)).toEqual(['page', 'views'])
    expect(await after(6_000)).toEqual(['page', 'recommendations', 'views'])
    expect(manager.level).toBe('full')
  })

  it('a feature can be set to switch off when its dependency is only degraded', async () => {
    const { status, manager, after } = shop()
    status.stats = status.recs = 'degraded'
    expect(await after(1_000)).toEqual(['page', 'recommendations'])
    expect(manager.level).toBe('no-analytics')
  })

  it('a critical feature without its dependency sets the level to maintenance', async () => {
    const { status, manager, after } = shop()
    const levels: string[] = []
    manager.onLevel((level, before) => levels.push(`${before} -> ${level}`))
    status.db = 'unavailable'
    await after(1_000)
    status.db = 'healthy'
    await after(12_000)
    expect(levels).toEqual(['full -> maintenance', 'maintenance -> full'])
  })

  it('setStatus() sets the status of a dependency', () => {
    const { manager, on } = shop()
    manager.setStatus('recs', 'unavailable')
    expect(on()).toEqual(['page', 'views'])
    expect(manager.snapshot().dependencies).toMatchObject({ recs: 'unavailable', db: 'healthy' })
  })

  it("a guard's breaker decides the status of a dependency", async () => {
    const clock = createVirtualClock()
    const spillway = createSpillway({ clock })
    const recs = spillway.guard('recs', {
      breaker: { consecutiveFailures: 2, openMs: '5s', successes: 1 },
    })
    const manager = createFeatureManager({
      features: { recommendations: { importance: 'optional', dependsOn: ['recs'] } },
      dependencies: { recs },
      load: () => ({ cpu: 0, memory: 0 }),
      holdMs: '1s',
      clock,
    })
    expect(manager.isOn('recommendations')).toBe(true)
    for (let i = 0; i < 2; i++)
      await recs.run(() => Promise.reject(new Error('503'))).catch(() => {})
    await clock.advance(1_000)
    expect(manager.isOn('recommendations')).toBe(false)
    await clock.advance(5_000)
    // A half-open breaker makes the dependency degraded.
    expect(manager.snapshot().dependencies.recs).toBe('degraded')
    await clock.advance(2_000)
    expect(manager.isOn('recommendations')).toBe(true)
    await recs.run(() => 'well')
    await clock.advance(1_000)
    expect(manager.snapshot().dependencies.recs).toBe('healthy')
    manager.close()
  })

  it('a dependency check that throws means unavailable', async () => {
    const { manager } = managed({
      features: { a: { importance: 'low', dependsOn: ['x'] } },
      dependencies: {
        x: () => {
          throw new Error('no')
        },
      },
    })
    expect(manager.isOn('a')).toBe(false)
  })

  it('run() falls back when the feature is off or its function throws', async () => {
    const { manager } = shop()
    const run = (fn: () => string) => manager.run('recommendations', fn, () => 'popular')
    expect(await run(() => 'personal')).toBe('personal')
    expect(
      await run(() => {
        throw new Error('no')
      }),
    ).toBe('popular')
    manager.setStatus('recs', 'unavailable')
    expect(await run(() => 'personal')).toBe('popular')
  })
})

describe('feature manager options', () => {
  it.each([
    [
      { features: { a: { importance: 'hgih' } } },
      "featureManager.features.a.importance: must be one of 'critical'",
    ],
    [{ feature: {} }, "featureManager.feature: unknown option; did you mean 'features'?"],
    [{ thresholds: { low: 0.9, normal: 0.5 } }, 'featureManager.thresholds: must not decrease'],
    [{ dependencies: { a: 1 } }, 'featureManager.dependencies.a: must be a guard, a function'],
    [
      {
        features: { a: { importance: 'low', dependsOn: ['reqs'] } },
        dependencies: { recs: 'healthy' },
      },
      "unknown dependency 'reqs'; did you mean 'recs'?",
    ],
  ])('feature manager options %j are rejected with their path', (options, message) => {
    expect(() => createFeatureManager(options as never)).toThrow(message)
  })

  it('unknown and duplicate feature names are rejected', () => {
    const { manager } = managed()
    expect(() => manager.isOn('payy')).toThrow("unknown feature 'payy'; did you mean 'pay'?")
    expect(() => manager.register('pay', { importance: 'low' })).toThrow('is registered already')
    manager.register('search', { importance: 'normal' })
    expect(manager.isOn('search')).toBe(true)
  })
})
