/** Which outage rule applies when, what callers receive and what operators see. */
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createSpillway, type GuardOptions, onEvent, type SpillwayEvent } from '../src/index.js'
import { createSharedRateLimiter } from '../src/shared/index.js'
import { createHarness, createVirtualClock } from '../src/testing/index.js'
import { usualOrLong } from './long-run.js'
import { createOutageFleet } from './outage-fleet.js'

/** Three callers of a pod already make more calls than the fleet's limit allows. */
const CALLERS = usualOrLong(3, 10)

afterEach(() => {
  vi.unstubAllEnvs()
})

function setup(options: GuardOptions, { pods = 1, expectedPods = 1, down = false } = {}) {
  const fleet = createHarness({
    seed: 1,
    pods,
    create: ({ name, clock, store, random }) => {
      if (down) store.goDown()
      const spillway = createSpillway({ store, clock, random, pod: name, expectedPods })
      return { spillway, guard: spillway.guard('vendor', options) }
    },
  })
  const { value } = fleet.pods[0]!
  const all = (act: 'goDown' | 'comeBack') => {
    for (const { store } of fleet.pods) store[act]()
  }
  const call = (user = 'ann') =>
    fleet.settle(value.guard.run(() => 'fine', { user }).catch((error) => error))
  const passing = async (calls: number) => {
    let passed = 0
    for (let made = 0; made < calls; made++) if ((await call()) === 'fine') passed++
    return passed
  }
  return { fleet, ...value, all, call, passing }
}

const limits = (outage?: 'share' | 'local' | 'allow' | 'refuse') =>
  ({ limits: [{ limit: 8, windowMs: '1m', ...(outage && { outage }) }] }) as const

describe('limits during an outage', () => {
  it.each([
    ['share', 2],
    ['local', 8],
    ['allow', 20],
    ['refuse', 0],
  ] as const)(
    'outage rule %s of a limit allows one of four pods %i of its 20 calls',
    async (rule, most) => {
      const { fleet, all, passing } = setup(limits(rule), { pods: 4 })
      await fleet.run(1_500)
      all('goDown')
      await fleet.run(1_500)
      expect(await passing(20)).toBe(most)
    },
  )

  it("the default outage rule of a limit is 'share'", async () => {
    const { fleet, all, passing } = setup(limits(), { pods: 4 })
    await fleet.run(1_500)
    all('goDown')
    await fleet.run(1_500)
    expect(await passing(20)).toBe(2)
  })

  it("a refusal during an outage says that this pod's share is used up", async () => {
    const { fleet, all, passing, call } = setup(limits(), { pods: 4 })
    await fleet.run(1_500)
    all('goDown')
    await fleet.run(1_500)
    await passing(2)
    const error = await call()
    expect(error).toMatchObject({
      code: 'VENDOR_LIMITED',
      scope: 'local',
      details: { byOutageRule: true },
    })
    expect(error.message).toMatch(
      /^vendor: this pod's share of the limit on requests in lane default is used up/,
    )
    expect(error.retryAfterMs).toBeGreaterThan(0)
  })

  it('a pod that never reached the store divides by expectedPods and warns', async () => {
    const { fleet, passing, spillway } = setup(limits(), { expectedPods: 4, down: true })
    await fleet.run(1_100)
    expect(await passing(20)).toBe(2)
    expect(spillway.health()).toEqual({
      status: 'degraded',
      guards: { vendor: 'unreachable' },
      problems: [
        'vendor: the store does not answer: no connection',
        'vendor: the store has never answered: this pod assumes 4 pods',
      ],
    })
  })

  it.each(['open', 'closed'])(
    "the former outage rule '%s' is rejected and its new name suggested",
    (outage) => {
      const build = (options: object) => () => createSpillway().guard('vendor', options)
      const use = outage === 'open' ? "use 'allow'" : "use 'refuse'"
      const limit = { limit: 1, windowMs: 1_000, outage }
      const got = `must be one of 'share', 'local', 'allow', 'refuse', got "${outage}"; ${use}`
      expect(build({ limits: [limit] })).toThrow(`guard(vendor).limits[0].outage: ${got}`)
      expect(build({ userLimits: [{ per: 'user', ...limit }] })).toThrow(`outage: ${got}`)
      expect(build({ breaker: { outage } })).toThrow(
        `guard(vendor).breaker.outage: must be one of 'local', 'allow', 'refuse', got "${outage}"; ${use}`,
      )
    },
  )

  it('a misspelt outage rule is rejected with a suggestion', () => {
    const build = (options: object) => () => createSpillway().guard('vendor', options)
    const misspelt = { limits: [{ limit: 1, windowMs: 1_000, outage: 'shared' }] }
    expect(build(misspelt)).toThrow(/limits\[0\]\.outage: must be one of .* did you mean 'share'\?/)
    expect(build({ breaker: { outage: 'share' } })).toThrow(
      /breaker\.outage: must be one of 'local'/,
    )
    const level = { userLimits: [{ per: 'user', limit: 1, windowMs: 1_000, outage: 'alow' }] }
    expect(build(level)).toThrow(/userLimits\[0\]\.outage: .* did you mean 'allow'\?/)
  })
})

describe('user limits during an outage', () => {
  const users = (outage?: 'share' | 'local' | 'allow' | 'refuse') =>
    ({
      userLimits: [{ per: 'user', limit: 8, windowMs: '1h', ...(outage && { outage }) }],
      limits: [{ limit: 1_000, windowMs: '1m' }],
    }) as const

  it.each([
    [undefined, 8],
    ['allow', 20],
    ['share', 2],
    ['local', 8],
    ['refuse', 0],
  ] as const)(
    'outage rule %s of a user limit allows %i of 20 calls of one user',
    async (rule, most) => {
      const { fleet, all, passing } = setup(users(rule), { pods: 4 })
      await fleet.run(1_500)
      all('goDown')
      await fleet.run(1_500)
      expect(await passing(20)).toBe(most)
      all('comeBack')
      await fleet.run(1_500)
      // Nothing was reported to the store, so its bucket is full.
      expect(await passing(20)).toBe(8)
    },
  )

  it('a user-limit refusal during an outage has local scope', async () => {
    const { fleet, all, passing, call } = setup(users('local'))
    await fleet.run(1_500)
    all('goDown')
    await fleet.run(1_500)
    await passing(8)
    expect(await call()).toMatchObject({ code: 'USER_LIMITED', scope: 'local' })
  })
})

describe('outage in events and health', () => {
  it('an outage appears in events, snapshots and health from its first failure to its end', async () => {
    const events: SpillwayEvent[] = []
    const stop = onEvent((event) => events.push(event))
    const { fleet, all, spillway, guard } = setup({ ...limits(), breaker: {} })
    await fleet.run(1_500)
    expect(spillway.health()).toEqual({ status: 'ok', guards: { vendor: 'shared' }, problems: [] })
    all('goDown')
    await fleet.run(1_500)
    expect(guard.snapshot().store).toMatchObject({
      status: 'unreachable',
      why: 'no connection',
      rules: { limits: { requests: 'share' }, breaker: 'local' },
      inForce: { limits: true, breaker: true },
      shares: { requests: 8 },
    })
    expect(guard.snapshot().store?.forMs).toBeGreaterThan(500)
    fleet.restartStore()
    all('comeBack')
    await fleet.run(2_000)
    expect(guard.snapshot().store).toMatchObject({
      status: 'untrusted',
      inForce: { limits: true, breaker: false },
    })
    expect(spillway.snapshot().health.status).toBe('degraded')
    await fleet.run(60_000)
    stop()
    expect(spillway.health().status).toBe('ok')
    const seen = events.flatMap((each) =>
      each.type === 'store.degraded'
        ? each.status
        : each.type === 'store.restored'
          ? 'restored'
          : [],
    )
    expect(seen).toEqual(['unreachable', 'untrusted', 'restored'])
  })
})

describe('SPILLWAY_SHARED', () => {
  it('SPILLWAY_SHARED=off gives the pod its share of expectedPods and makes no round trip', async () => {
    vi.stubEnv('SPILLWAY_SHARED', 'off')
    const { fleet, passing, spillway } = setup(limits(), { expectedPods: 4 })
    await fleet.run(3_000)
    expect(await passing(20)).toBe(2)
    expect(spillway.health()).toMatchObject({ status: 'degraded', guards: { vendor: 'off' } })
    expect(fleet.pods[0]!.store.counts.sent).toBe(0)
  })

  it('SPILLWAY_SHARED rejects a value that is neither on nor off', () => {
    vi.stubEnv('SPILLWAY_SHARED', 'of')
    expect(() => createSpillway()).toThrow(/SPILLWAY_SHARED: must be one of 'on', 'off'/)
  })
})

describe('outage bugs known from other libraries', () => {
  it('an unreachable store causes neither hanging requests nor false 429s', async () => {
    const all = createOutageFleet({
      callers: () => CALLERS,
      guard: { limits: [{ limit: 100_000, windowMs: 10_000 }] },
    })
    await all.run(3_000)
    for (const { store } of all.fleet.pods) store.loseRequests(1)
    await all.run(10_000)
    await all.stop()
    expect(all.refusals).toEqual({})
    expect(all.longestMs).toBeLessThanOrEqual(100)
  })

  it('calls do not pay the command timeout again and again during an outage', async () => {
    const all = createOutageFleet({ pods: 1, callers: () => 1, limit: 100_000 })
    await all.run(3_000)
    const { store } = all.fleet.pods[0]!
    store.loseRequests(1)
    await all.run(200)
    const callsBefore = all.vendor.arrivalCount
    const sentBefore = store.counts.sent
    await all.run(10_000)
    await all.stop()
    // One caller that never waits, plus background attempts to reach the store.
    expect(all.vendor.arrivalCount - callsBefore).toBeGreaterThan(10_000 / 25)
    expect(store.counts.sent - sentBefore).toBeLessThan(60)
  })

  it('an idle pod gets no share of units that other pods have already used', async () => {
    // Three pods use everything; the fourth does nothing until the store is down.
    let idle = true
    const all = createOutageFleet({ callers: (pod) => (pod === 3 ? 0 : CALLERS) })
    await all.run(24_900)
    all.each(({ store }) => store.goDown())
    await all.run(500)
    const late = all.fleet.pods[3]!
    let passed = 0
    for (let call = 0; call < 100; call++) {
      const answer = late.value.guard
        .run(() => all.vendor.call())
        .then(
          () => passed++,
          () => {},
        )
      await all.fleet.settle(answer)
      idle = false
    }
    await all.stop()
    expect(idle).toBe(false)
    expect(passed).toBeLessThanOrEqual(1)
    expect(all.worst()).toBeLessThanOrEqual(105)
  })

  it('a rate limiter without a guard has the same outage rules', async () => {
    const clock = createVirtualClock()
    const fleet = createHarness({
      seed: 1,
      pods: 2,
      create: ({ name, clock: own, store, random }) =>
        createSharedRateLimiter({
          name: 'vendor',
          pod: name,
          store,
          random,
          clock: own,
          limits: [{ limit: 10, windowMs: '1m' }],
        }),
    })
    await fleet.run(1_500)
    for (const { store } of fleet.pods) store.goDown()
    const take = async () => {
      const answers = await Promise.all(
        Array.from({ length: 9 }, () => fleet.pods[0]!.value.acquire()),
      )
      return answers.filter(({ allowed }) => allowed).length
    }
    expect(await fleet.settle(take())).toBe(5)
    const refused = await fleet.settle(fleet.pods[0]!.value.acquire())
    expect(refused).toMatchObject({ allowed: false, byOutageRule: true })
    expect(clock.now()).toBe(0)
  })
})
