import { afterEach, describe, expect, it, vi } from 'vitest'
import { createRandom } from '../../core/random.js'
import { memoryStore } from '../../store/memory/memory-store.js'
import { createFaultyStore } from '../../testing/faulty-store.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import type { OutageRule } from '../outage/rules.js'
import type { Subject, UserLevel } from './levels.js'
import { createUserLimits } from './user-limits.js'

const MINUTE = 60_000

afterEach(() => {
  vi.unstubAllEnvs()
})

function local(...levels: UserLevel[]) {
  const clock = createVirtualClock()
  const store = memoryStore({ clock })
  return { clock, store, limits: createUserLimits({ store, levels, clock }) }
}

/** A store that can become unreachable. */
function remote(levels: UserLevel[], options: { expectedPods?: number } = {}) {
  const clock = createVirtualClock()
  const random = createRandom(1)
  const store = createFaultyStore(memoryStore({ clock }), { clock, random })
  const limits = createUserLimits({ store, levels, clock, random, name: 'api', ...options })
  const check = (subject: Subject & { cost?: number } = { user: 'ann' }) =>
    clock.until(limits.check(subject))
  const passing = async (calls: number, subject?: Subject) => {
    let passed = 0
    for (let made = 0; made < calls; made++) if ((await check(subject)).allowed) passed++
    return passed
  }
  return { clock, store, limits, check, passing }
}

const perUser = (limit: number, outage?: OutageRule): UserLevel => ({
  per: 'user',
  limit,
  windowMs: MINUTE,
  ...(outage && { outage }),
})

describe('levels of user limits', () => {
  it('check() returns the tightest level, its rest, its reset and the wait in milliseconds', async () => {
    const { clock, limits } = local(
      { per: 'global', limit: 100, windowMs: MINUTE },
      { per: 'user', limit: 4, windowMs: MINUTE },
    )
    expect(await limits.check({ user: 'ann', cost: 3 })).toEqual({
      allowed: true,
      level: 'user',
      remaining: 1,
      resetMs: 45_000,
      retryAfterMs: 0,
    })
    expect(await limits.check({ user: 'ann', cost: 2 })).toEqual({
      allowed: false,
      level: 'user',
      remaining: 1,
      resetMs: 45_000,
      retryAfterMs: 15_000,
    })
    await clock.advance(15_000)
    expect(await limits.check({ user: 'ann', cost: 2 })).toMatchObject({ allowed: true })
  })

  it('limits of users by tier apply to each user of the tier separately', async () => {
    const { limits } = local({ per: 'user', limit: { free: 3, pro: 6 }, windowMs: MINUTE })
    const allowed = async (subject: Subject) => {
      let count = 0
      while (count < 20 && (await limits.check(subject)).allowed) count++
      return count
    }
    expect(await allowed({ user: 'ann', tier: 'free' })).toBe(3)
    expect(await allowed({ user: 'bob', tier: 'free' })).toBe(3)
    expect(await allowed({ user: 'cid', tier: 'pro' })).toBe(6)
    // A tier that the level does not name is not limited by it, nor is a user without a tier.
    expect(await allowed({ user: 'dan', tier: 'enterprise' })).toBe(20)
    expect(await allowed({ user: 'eve' })).toBe(20)
    expect(await limits.check({ user: 'ann', tier: 'free' })).toMatchObject({
      allowed: false,
      level: 'user',
      retryAfterMs: 20_000,
    })
  })

  it('a request to which no level applies is unlimited', async () => {
    const { limits } = local(perUser(1), { per: 'endpoint', limit: 1, windowMs: MINUTE })
    const unlimited = {
      allowed: true,
      level: undefined,
      remaining: Number.POSITIVE_INFINITY,
      resetMs: 0,
      retryAfterMs: 0,
    }
    for (const subject of [{}, { ip: '::1' }, { endpoint: '/a' }, { tier: 'free' }]) {
      expect(await limits.check(subject)).toEqual(unlimited)
      expect(await limits.check(subject)).toEqual(unlimited)
    }
  })

  it('every user, address and tier has a bucket of its own, and the global level has one', async () => {
    const passes = async (per: UserLevel['per'], subjects: Subject[]) => {
      const { limits } = local({ per, limit: 1, windowMs: MINUTE })
      const results = []
      for (const subject of subjects) results.push((await limits.check(subject)).allowed)
      return results
    }
    const [ann, ben] = [
      { user: 'ann', ip: '::1', tier: 'free', endpoint: '/a' },
      { user: 'ben', ip: '::2', tier: 'paid', endpoint: '/b' },
    ]
    for (const per of ['user', 'ip', 'tier', 'endpoint'] as const) {
      expect(await passes(per, [ann, ben, ann, ben])).toEqual([true, true, false, false])
    }
    expect(await passes('global', [ann, ben])).toEqual([true, false])
  })

  it('an endpoint is counted for each address, and a tier for all of its users', async () => {
    const { limits } = local({ per: 'endpoint', limit: { '/a': 1 }, windowMs: MINUTE })
    const allowed = async (ip: string, endpoint: string) =>
      (await limits.check({ ip, endpoint })).allowed
    expect([await allowed('::1', '/a'), await allowed('::1', '/a')]).toEqual([true, false])
    expect([await allowed('::2', '/a'), await allowed('::1', '/b')]).toEqual([true, true])
    const tiers = local({ per: 'tier', limit: { free: 1, paid: 'unlimited' }, windowMs: MINUTE })
    const ofTier = async (user: string, tier: string) =>
      (await tiers.limits.check({ user, tier })).allowed
    expect([await ofTier('ann', 'free'), await ofTier('ben', 'free')]).toEqual([true, false])
    for (const tier of ['paid', 'paid', 'other', 'other', 'toString']) {
      expect(await ofTier('ann', tier)).toBe(true)
    }
  })

  it('two levels of the same kind are counted separately', async () => {
    const { limits } = local(
      { per: 'user', limit: 1, windowMs: MINUTE },
      { per: 'user', limit: 3, windowMs: 10 * MINUTE },
    )
    const costs = [1, 1]
    const results = []
    for (const cost of costs) results.push(await limits.check({ user: 'ann', cost }))
    expect(results.map(({ allowed }) => allowed)).toEqual([true, false])
    // The refusal costs nothing on the second level.
    const second = local({ per: 'user', limit: 3, windowMs: 10 * MINUTE })
    expect(await second.limits.check({ user: 'ann' })).toMatchObject({ remaining: 2 })
  })

  it('limits with different names in one store are counted separately, with the same name together', async () => {
    const { store } = local()
    const named = (name?: string) =>
      createUserLimits({ store, levels: [perUser(1)], ...(name && { name }) })
    const allowed = async (name?: string) => (await named(name).check({ user: 'ann' })).allowed
    expect([await allowed('a'), await allowed('b'), await allowed()]).toEqual([true, true, true])
    expect([await allowed('a'), await allowed('b'), await allowed()]).toEqual([false, false, false])
  })

  it('a burst bounds what is taken at once, and the window sets the rate', async () => {
    const { clock, limits } = local({ per: 'user', limit: 60, windowMs: MINUTE, burst: 2 })
    const allowed = async () => (await limits.check({ user: 'ann' })).allowed
    expect([await allowed(), await allowed(), await allowed()]).toEqual([true, true, false])
    await clock.advance(1_000)
    expect([await allowed(), await allowed()]).toEqual([true, false])
  })

  it.each([1, 3, 7, 9, 60, 999, 7_000])(
    'a limit of %i per minute grants that many requests at once, and reports what remains',
    async (limit) => {
      for (const levels of [[perUser(limit)], [perUser(limit), perUser(2 * limit)]]) {
        const { clock, limits } = local(...levels)
        const results = []
        for (let made = 0; made < limit; made++) results.push(await limits.check({ user: 'ann' }))
        expect(results.map(({ allowed }) => allowed)).not.toContain(false)
        expect(results.map(({ remaining }) => remaining)).toEqual(
          results.map((_, made) => limit - 1 - made),
        )
        const refused = await limits.check({ user: 'ann' })
        expect(refused).toMatchObject({ allowed: false, remaining: 0 })
        await clock.advance(refused.retryAfterMs)
        expect(await limits.check({ user: 'ann' })).toMatchObject({ allowed: true })
        expect(await limits.check({ user: 'ann' })).toMatchObject({ allowed: false })
      }
    },
  )

  it('more users than are remembered keep their buckets', async () => {
    const { limits } = local(perUser(1))
    for (let i = 0; i < 5_000; i++) await limits.check({ user: `user-${i}` })
    for (const i of [0, 4_095, 4_096, 4_999]) {
      expect((await limits.check({ user: `user-${i}` })).allowed).toBe(false)
    }
  })

  it.each([
    [{ user: 7 }, 'user: must be a string, got 7; convert it, for example with String(user)'],
    [{ tier: null }, 'tier: must be a string, got null; leave tier out where there is none'],
    [{ ip: {} }, 'ip: must be a string, got an object; convert it'],
    [{ endpoint: false }, 'endpoint: must be a string, got false'],
    [{ user: 'ann', cost: 0 }, 'cost: must be'],
    [{ user: 'ann', cost: 1.5 }, 'cost: must be'],
  ])('the subject %j is refused: %s', async (subject, message) => {
    const { limits } = local(perUser(9))
    await expect(limits.check(subject as Subject)).rejects.toThrow(message)
  })
})

describe('user limits of a remote store', () => {
  it('checks of one moment share a round trip and are granted in order', async () => {
    const { clock, store, limits } = remote([perUser(3)])
    const checks = Array.from({ length: 5 }, () => limits.check({ user: 'ann' }))
    const results = await clock.until(Promise.all(checks))
    expect(results.map(({ allowed }) => allowed)).toEqual([true, true, true, false, false])
    expect(store.counts.sent).toBe(1)
  })

  it('checks made during a round trip leave together when it returns', async () => {
    const { clock, store, limits } = remote([perUser(9)])
    const first = limits.check({ user: 'ann' })
    await clock.settle()
    const others = Array.from({ length: 4 }, () => limits.check({ user: 'ann' }))
    await clock.settle()
    expect(store.counts.sent).toBe(1)
    const results = await clock.until(Promise.all([first, ...others]))
    expect(results.map(({ remaining }) => remaining)).toEqual([8, 7, 6, 5, 4])
    expect(store.counts.sent).toBe(2)
  })

  it('one round trip carries at most 256 checks', async () => {
    const { clock, store, limits } = remote([perUser(300)])
    const checks = Array.from({ length: 257 }, () => limits.check({ user: 'ann' }))
    const results = await clock.until(Promise.all(checks))
    expect(results.at(-1)).toMatchObject({ allowed: true, remaining: 43 })
    expect(store.counts.sent).toBe(2)
  })

  it.each<[OutageRule | undefined, number]>([
    ['share', 2],
    ['local', 8],
    ['allow', 20],
    [undefined, 8],
  ])(
    'with the outage rule %s one of four pods grants %i of 20 requests of a user while the store is unreachable',
    async (rule, most) => {
      const { store, passing } = remote([perUser(8, rule)], { expectedPods: 4 })
      store.goDown()
      expect(await passing(20)).toBe(most)
    },
  )

  it.each<[UserLevel['per'], number]>([
    ['user', 8],
    ['ip', 8],
    ['endpoint', 8],
    ['global', 2],
    ['tier', 2],
  ])(
    'without an outage rule the level %s grants %i of 20 requests in one of four pods while the store is unreachable',
    async (per, granted) => {
      const level: UserLevel = { per, limit: 8, windowMs: MINUTE }
      const { store, check } = remote([level], { expectedPods: 4 })
      store.goDown()
      const subject = { user: 'ann', ip: '::1', tier: 'free', endpoint: '/a' }
      let allowed = 0
      for (let request = 0; request < 20; request++) {
        const result = await check(subject)
        if (result.allowed) allowed++
        else expect(result).toMatchObject({ level: per, remaining: 0 })
      }
      expect(allowed).toBe(granted)
    },
  )

  it('a level with the outage rule refuse refuses a request with STORE_UNAVAILABLE', async () => {
    const { store, check } = remote([perUser(8, 'allow'), perUser(8, 'refuse')])
    store.goDown()
    await expect(check()).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      stage: 'user-limit',
      scope: 'shared',
      details: { name: 'api', outage: 'refuse' },
    })
  })

  it('a share is at least one request', async () => {
    const { store, passing } = remote([perUser(2, 'share')], { expectedPods: 10 })
    store.goDown()
    expect(await passing(5)).toBe(1)
  })

  it('a refusal during an outage names the level that refused, although another level has the rule allow', async () => {
    const { store, check } = remote([
      { per: 'global', limit: 1, windowMs: MINUTE, outage: 'allow' },
      { per: 'ip', limit: 2, windowMs: MINUTE, outage: 'local' },
      { per: 'user', limit: 1, windowMs: MINUTE, outage: 'local' },
    ])
    store.goDown()
    const subject = { user: 'ann', ip: '::1' }
    expect(await check(subject)).toMatchObject({ allowed: true, level: 'user', remaining: 0 })
    expect(await check(subject)).toMatchObject({ allowed: false, level: 'user' })
    expect(await check({ ip: '::1' })).toMatchObject({ allowed: true, level: 'ip' })
  })

  it('while the store is unreachable user limits retry it only now and then, and use it again when it is back', async () => {
    const { clock, store, check, passing } = remote([perUser(5, 'local')])
    expect(await passing(1)).toBe(1)
    store.goDown()
    expect(await passing(3)).toBe(3)
    expect(store.counts.notSent).toBe(1)
    await clock.advance(10_000)
    await passing(3)
    // One more attempt, in the background of a request that was decided locally.
    expect(store.counts.notSent).toBe(2)
    store.comeBack()
    await clock.advance(10_000)
    await check()
    await clock.advance(100)
    const sent = store.counts.sent
    await check()
    expect(store.counts.sent).toBe(sent + 1)
  })

  it('checks that collected during a failed round trip are not sent after it', async () => {
    const { clock, store, limits } = remote([perUser(9, 'local')])
    store.loseRequests(1)
    const first = limits.check({ user: 'ann' })
    await clock.settle()
    const second = limits.check({ user: 'ann' })
    const results = await clock.until(Promise.all([first, second]))
    expect(results.map(({ remaining }) => remaining)).toEqual([8, 7])
    expect(store.counts.sent).toBe(1)
  })

  it('SPILLWAY_SHARED=off decides locally and sends nothing to the store', async () => {
    vi.stubEnv('SPILLWAY_SHARED', 'off')
    const { store, passing } = remote([perUser(8, 'share')], { expectedPods: 4 })
    expect(await passing(20)).toBe(2)
    expect(store.counts.sent + store.counts.notSent).toBe(0)
  })
})
