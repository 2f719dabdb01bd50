/**
 * Breakers while the store is unreachable: local, starting from the shared state, then shared
 * again.
 */
import { describe, expect, it } from 'vitest'
import { createSpillway, type GuardOptions } from '../src/index.js'
import { createHarness, sleep } from '../src/testing/index.js'
import { vendorError } from './guard-pod.js'

const BREAKER = {
  consecutiveFailures: 3,
  openMs: '10s',
  probes: 1,
  successes: 1,
  rampMs: 0,
} as const

function setup(breaker: NonNullable<GuardOptions['breaker']> = BREAKER) {
  const fleet = createHarness({
    seed: 1,
    pods: 2,
    create: ({ name, clock, store, random }) =>
      createSpillway({ store, clock, random, pod: name }).guard('vendor', { breaker }),
  })
  const guards = fleet.pods.map(({ value }) => value)
  const all = (act: 'goDown' | 'comeBack') => {
    for (const { store } of fleet.pods) store[act]()
  }
  const call = (pod: number, fails = false) =>
    fleet.settle(
      guards[pod]!.run(() => {
        if (fails) throw vendorError(500)
        return 'fine'
      }).catch((error) => error.code ?? error.status),
    )
  const states = () => guards.map(({ breaker: each }) => each?.state())
  return { fleet, guards, all, call, states }
}

async function fail(call: ReturnType<typeof setup>['call'], pod: number, times = 3) {
  for (let failure = 0; failure < times; failure++) await call(pod, true)
}

describe('breaker during an outage', () => {
  it('an open breaker stays open for its time and then lets this pod probe', async () => {
    const { fleet, all, call, states } = setup()
    await fleet.run(100)
    await fail(call, 0)
    await fleet.run(100)
    expect(states()).toEqual(['open', 'open'])
    all('goDown')
    await fleet.run(5_000)
    expect(await call(1)).toBe('CIRCUIT_OPEN')
    await fleet.run(5_000)
    expect(states()).toEqual(['half-open', 'half-open'])
    expect(await call(1)).toBe('fine')
    expect(states()).toEqual(['half-open', 'closed'])
  })

  it('a refusal during an outage names the failures that opened the shared breaker', async () => {
    const { fleet, all, call, guards } = setup()
    await fleet.run(100)
    await fail(call, 0)
    await fleet.run(100)
    all('goDown')
    await fleet.run(2_000)
    const refused = fleet.settle(guards[1]!.run(() => 'fine'))
    await expect(refused).rejects.toMatchObject({
      details: { cause: '3 failures in a row', calls: 3, failures: 3 },
    })
  })

  it('during an outage a breaker opens for this pod alone, and is shared again 2 s after its end', async () => {
    const { fleet, all, call, states, guards } = setup()
    await fleet.run(1_100)
    all('goDown')
    await fleet.run(1_500)
    expect(guards.map((guard) => guard.snapshot().store?.status)).toEqual([
      'unreachable',
      'unreachable',
    ])
    await fail(call, 0)
    expect(states()).toEqual(['open', 'closed'])
    all('comeBack')
    await fleet.run(2_000)
    // The failures of one pod during the outage neither open the shared breaker nor keep its own
    // open.
    expect(states()).toEqual(['closed', 'closed'])
    await fail(call, 0)
    await fleet.run(50)
    expect(states()).toEqual(['open', 'open'])
  })

  it('an isolated breaker stays isolated during an outage', async () => {
    const { fleet, all, call, guards } = setup()
    await fleet.run(100)
    await fleet.settle(guards[0]!.breaker!.isolate('1m'))
    await fleet.run(100)
    all('goDown')
    await fleet.run(30_000)
    expect(await call(1)).toBe('CIRCUIT_OPEN')
    await expect(fleet.settle(guards[0]!.breaker!.release())).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    })
    await fleet.run(31_000)
    expect(await call(1)).toBe('fine')
  })

  it('a breaker whose outage rule allows calls lets every call through', async () => {
    const { fleet, all, call } = setup({ ...BREAKER, outage: 'allow' })
    await fleet.run(100)
    await fail(call, 0)
    await fleet.run(50)
    expect(await call(0)).toBe('CIRCUIT_OPEN')
    all('goDown')
    await fleet.run(1_500)
    await fail(call, 0, 5)
    expect(await call(0)).toBe('fine')
    all('comeBack')
    await fleet.run(1_500)
    expect(await call(0)).toBe('CIRCUIT_OPEN')
  })

  it('a breaker whose outage rule allows calls stays closed while calls hang', async () => {
    const { fleet, guards, all, call } = setup({ failureRate: 0.5, outage: 'allow' })
    const answered = () => guards[0]!.run(() => sleep(fleet.clock, 50))
    all('goDown')
    await fleet.run(1_500)
    await fleet.settle(Promise.all(Array.from({ length: 20 }, answered)))
    const hang = async () => {
      await sleep(fleet.clock, 5_000)
      throw vendorError(500)
    }
    for (let wave = 0; wave < 3; wave++) {
      const calls = Array.from({ length: 20 }, () => guards[0]!.run(hang).catch(() => {}))
      await fleet.settle(Promise.all(calls))
    }
    expect(await call(0)).toBe('fine')
  })

  it('a breaker whose outage rule refuses calls refuses with STORE_UNAVAILABLE', async () => {
    const { fleet, all, call } = setup({ ...BREAKER, outage: 'refuse' })
    await fleet.run(100)
    expect(await call(0)).toBe('fine')
    all('goDown')
    await fleet.run(1_500)
    expect(await call(0)).toBe('STORE_UNAVAILABLE')
    all('comeBack')
    await fleet.run(1_500)
    expect(await call(0)).toBe('fine')
  })
})
