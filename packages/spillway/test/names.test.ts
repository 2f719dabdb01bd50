/** Names and ids that callers choose, and values of the wrong type in their place. */
import { describe, expect, it } from 'vitest'
import { OptionsError } from '../src/core/options/checks.js'
import { createFeatureManager } from '../src/degrade/feature-manager.js'
import { createSpillway } from '../src/guard/spillway.js'
import { createLoadShedder } from '../src/local/load-shedder/load-shedder.js'
import { createSharedRateLimiter } from '../src/shared/rate-limiter/rate-limiter.js'
import { createUserLimits } from '../src/shared/user-limits/user-limits.js'
import { memoryStore } from '../src/store/memory/memory-store.js'
import { createVirtualClock } from '../src/testing/virtual-clock.js'
import { createGuardPod, EVERYWHERE, fateOf } from './guard-pod.js'

/** Properties that every object inherits. */
const INHERITED = ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf']

/** An object literal would set the prototype instead. */
const having = (name: string, value: unknown) => Object.fromEntries([[name, value]])

const WINDOW = { windowMs: 60_000 }

async function problemsOf(run: () => unknown) {
  try {
    await run()
  } catch (error) {
    expect(error).toBeInstanceOf(OptionsError)
    return (error as OptionsError).problems
  }
  throw new Error('nothing was wrong')
}

describe.each(INHERITED)('the name %s', (name) => {
  it('an inherited name is refused as the unit of a limit, with its path and a remedy', async () => {
    const spillway = createSpillway()
    const limits = [
      { limit: 1, ...WINDOW },
      { unit: name, limit: 1, ...WINDOW },
    ]
    const problems = await problemsOf(() => spillway.guard('vendor', { limits }))
    expect(problems).toEqual([
      {
        path: 'guard(vendor).limits[1].unit',
        message: `must not be '${name}', a property of every object; choose a name such as 'tokens'`,
      },
    ])
    const store = memoryStore()
    const shared = await problemsOf(() =>
      createSharedRateLimiter({ name: 'vendor', store, limits }),
    )
    expect(shared).toMatchObject([{ path: 'sharedRateLimiter.limits[1].unit' }])
  })

  it.each(EVERYWHERE)('an inherited name is no unit of a cost, store: %s', async (where) => {
    const { clock, quick } = createGuardPod({ limits: [{ limit: 5, ...WINDOW }] }, { where })
    const call = quick({ cost: having(name, 1) as Record<string, number> })
    await clock.advance(100)
    expect(call.error).toBeInstanceOf(OptionsError)
    expect((call.error as OptionsError).problems).toEqual([
      { path: `cost.${name}`, message: `no limit on '${name}'; known: requests` },
    ])
  })

  it.each(EVERYWHERE)('an inherited name may be any name of a call, store: %s', async (where) => {
    const { clock, quick, guard } = createGuardPod(
      {
        limits: [{ limit: 50, ...WINDOW }],
        breaker: { consecutiveFailures: 3 },
        userLimits: [
          { per: 'tier', limit: having(name, 2) as Record<string, number>, ...WINDOW },
          { per: 'user', limit: 50, ...WINDOW },
          { per: 'endpoint', limit: having(name, 50) as Record<string, number>, ...WINDOW },
        ],
      },
      { where },
    )
    const options = { tier: name, user: name, ip: name, endpoint: name, lane: name }
    const calls = [quick(options), quick(options), quick(options)]
    await clock.advance(100)
    expect(calls.map(fateOf)).toEqual(['resolved', 'resolved', 'USER_LIMITED'])
    expect(guard.breaker?.state({ lane: name })).toBe('closed')
  })

  it('an inherited name finds no limit for a tier that the options do not name', async () => {
    const { clock, quick } = createGuardPod({
      userLimits: [{ per: 'tier', limit: { free: 1 }, ...WINDOW }],
    })
    const calls = [quick({ tier: name }), quick({ tier: name })]
    await clock.advance(100)
    expect(calls.map(fateOf)).toEqual(['resolved', 'resolved'])
  })

  it('an inherited name is refused as a priority', async () => {
    const { clock, quick } = createGuardPod({})
    const call = quick({ priority: name as 'high' })
    await clock.advance(1)
    expect(call.error).toMatchObject({ problems: [{ path: 'priority' }] })
  })

  it('an inherited name is an ordinary guard name in the health report', () => {
    const spillway = createSpillway()
    spillway.guard(name, {})
    expect(Object.entries(spillway.snapshot().health.guards)).toEqual([[name, 'memory']])
  })

  it('an inherited name is an ordinary tier of a load shedder and dependency of a feature', () => {
    const clock = createVirtualClock()
    const tiers = having(name, 0) as Record<string, number>
    const shedder = createLoadShedder({ maxInFlight: 2, tiers, clock })
    shedder.enter()
    expect(shedder.check({ tier: name })).toBe('tier')
    expect(shedder.check({ tier: 'other' })).toBeUndefined()
    const features = createFeatureManager({
      dependencies: having(name, () => 'up') as never,
      clock,
    })
    expect(Object.keys(features.snapshot().dependencies)).toEqual([name])
    features.close?.()
  })
})

describe('a user, tier, address or endpoint that is no string', () => {
  const userLimits = [{ per: 'user' as const, limit: 1, ...WINDOW }]
  const WRONG = [
    ['user', 42, 'must be a string, got 42; convert it, for example with String(user)'],
    ['user', null, 'must be a string, got null; leave user out where there is none'],
    ['user', {}, 'must be a string, got an object; convert it, for example with String(user)'],
    ['user', true, 'must be a string, got true; convert it, for example with String(user)'],
    ['tier', 1, 'must be a string, got 1; convert it, for example with String(tier)'],
    ['ip', null, 'must be a string, got null; leave ip out where there is none'],
    ['endpoint', 7n, 'must be a string, got 7; convert it, for example with String(endpoint)'],
  ] as const

  describe.each(EVERYWHERE)('in a guard with store %s', (where) => {
    it.each(WRONG)('the invalid %s %s is an options error', async (field, value, message) => {
      const { clock, quick, guard } = createGuardPod({ userLimits }, { where })
      const call = quick(having(field, value))
      await clock.advance(100)
      expect(call.error).toBeInstanceOf(OptionsError)
      expect((call.error as OptionsError).problems).toEqual([{ path: field, message }])
      expect(guard.snapshot()).toMatchObject({ active: 0, attempts: 0 })
    })
  })

  it.each(WRONG)(
    'the invalid %s %s is an options error of createUserLimits',
    async (field, value, message) => {
      const limits = createUserLimits({ store: memoryStore(), levels: userLimits })
      expect(await problemsOf(() => limits.check(having(field, value)))).toEqual([
        { path: field, message },
      ])
    },
  )
})

describe('a signal that is no AbortSignal', () => {
  const WRONG = [
    [42, 'got 42'],
    [null, 'got null'],
    [NaN, 'got NaN'],
    [new AbortController(), 'got an object'],
  ] as const

  describe.each(EVERYWHERE)('in a guard with store %s', (where) => {
    it.each(WRONG)('an invalid signal of %s is an options error', async (signal, got) => {
      const limits = [{ limit: 1, ...WINDOW }]
      const { clock, quick, guard } = createGuardPod({ limits, queue: { size: 1 } }, { where })
      const call = quick({ signal: signal as never })
      await clock.advance(100)
      const message = `must be an AbortSignal, ${got}; leave signal out where there is none`
      expect(call.error).toBeInstanceOf(OptionsError)
      expect((call.error as OptionsError).problems).toEqual([{ path: 'signal', message }])
      expect(guard.snapshot()).toMatchObject({ active: 0, attempts: 0 })
      await clock.until(guard.close({ graceMs: 0 }))
    })
  })
})

describe('a cost that is no number of at least 0', () => {
  const limits = [{ unit: 'tokens', limit: 10, ...WINDOW }]

  describe.each(EVERYWHERE)('in a guard with store %s', (where) => {
    it.each([NaN, -1, Infinity, '5', true])('a cost of %s is an options error', async (tokens) => {
      const { clock, quick } = createGuardPod({ limits }, { where })
      const call = quick({ cost: { tokens: tokens as number } })
      await clock.advance(100)
      expect(call.error).toMatchObject({ problems: [{ path: 'cost.tokens' }] })
    })

    it.each([5, 'tokens', true])('a cost option of %s is an options error', async (cost) => {
      const { clock, quick } = createGuardPod({ limits }, { where })
      const call = quick({ cost: cost as never })
      await clock.advance(100)
      expect(call.error).toMatchObject({ problems: [{ path: 'cost' }] })
    })

    it.each([NaN, Infinity, -Infinity])('settling %s keeps the booked cost', async (tokens) => {
      const { clock, run, guard } = createGuardPod({ limits }, { where })
      run(({ settle }) => settle({ tokens }), { cost: { tokens: 4 } })
      await clock.advance(1_000)
      const again = run(() => 'ok', { cost: { tokens: 6 } })
      const late = run(() => 'ok', { cost: { tokens: 1 } })
      await clock.advance(1_000)
      expect([again, late].map(fateOf)).toEqual(['resolved', 'VENDOR_LIMITED'])
      await clock.until(guard.close({ graceMs: 0 }))
    })
  })
})
