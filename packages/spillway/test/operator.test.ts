// test-group: io

import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  createOperator,
  createSpillway,
  type Guard,
  type GuardOptions,
  type Operator,
  onEvent,
  type Spillway,
  type SpillwayEvent,
} from '../src/index.js'
import type { OperatorRequest } from '../src/operate/index.js'
import { memoryStore } from '../src/store/memory/memory-store.js'
import type { Store } from '../src/store/port.js'
import { redisStore } from '../src/store/redis/redis-store.js'
import { type RedisServer, startRedis } from './redis-server.js'

const VENDOR = {
  breaker: { failureRate: 0.5, minimumCalls: 5, windowMs: '1m', openMs: '30s' },
  limits: [
    { unit: 'requests', limit: 1_000, windowMs: '1m' },
    { unit: 'tokens', limit: 50_000, windowMs: '1m' },
  ],
} as const satisfies GuardOptions
const GUARDS: Record<string, GuardOptions> = { vendor: VENDOR, bare: { queue: { size: 1 } } }

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

let runs = 0

/** `pod` serves calls; `operator` belongs to a process that never does. */
interface Fleet {
  readonly operator: Operator
  readonly guard: Guard
  readonly store: Store
  /** Starts another pod. */
  join(): Promise<Guard>
  close(): Promise<void>
}

const STORES: Record<string, () => Promise<Fleet>> = {
  memory: async () => fleetOver(memoryStore, memoryStore()),
  redis: async () => {
    const prefix = `op${++runs}:`
    const create = () => redisStore({ url: redis.url, prefix, commandTimeoutMs: 10_000 })
    return fleetOver(create, undefined)
  },
}

async function fleetOver(create: () => Store, shared: Store | undefined): Promise<Fleet> {
  const stores: Store[] = shared === undefined ? [] : [shared]
  const pods: Spillway[] = []
  const next = async () => {
    if (shared !== undefined) return shared
    const store = create()
    stores.push(store)
    while ((store as { ready?: boolean }).ready === false) await sleep(5)
    return store
  }
  const join = async () => {
    const pod = createSpillway({ store: await next(), pod: `pod${pods.length}` })
    pods.push(pod)
    return pod.guard('vendor', VENDOR)
  }
  const guard = await join()
  const store = await next()
  return {
    guard,
    store,
    join,
    operator: createOperator({ store, guards: GUARDS }),
    async close() {
      await Promise.all(pods.map((pod) => pod.close({ graceMs: 0 })))
      await Promise.all(stores.map((each) => each.close()))
    },
  }
}

const outcomeOf = (guard: Guard, lane = 'default') =>
  guard.run(() => 'served', { lane }).catch((error) => error.code as string)
const soon = (guard: Guard, lane = 'default') => expect.poll(() => outcomeOf(guard, lane))

describe.each(Object.keys(STORES))('operator on the %s store', (kind) => {
  let fleet: Fleet
  let events: SpillwayEvent[]
  let stop: () => void
  beforeEach(async () => {
    fleet = await (STORES[kind] as () => Promise<Fleet>)()
    events = []
    stop = onEvent((event) => {
      if (event.type === 'operator.acted') events.push(event)
    })
    // Lanes that have been used.
    for (const lane of ['default', 'a', 'b'])
      expect(await outcomeOf(fleet.guard, lane)).toBe('served')
  })
  afterEach(async () => {
    stop()
    await fleet.close()
  })

  it('isolate applies to all lanes, unused ones and pods that start later included', async () => {
    const { operator, guard } = fleet
    const done = await operator.perform({
      action: 'isolate',
      guard: 'vendor',
      forMs: '10m',
      by: 'ada',
    })
    expect(done).toMatchObject({ guard: 'vendor', forMs: 600_000, message: 'isolated all lanes' })
    await soon(guard, 'a').toBe('CIRCUIT_OPEN')
    expect(await outcomeOf(guard, 'never used')).toBe('CIRCUIT_OPEN')
    const late = await fleet.join()
    expect(await outcomeOf(late, 'a')).toBe('CIRCUIT_OPEN')
    expect(guard.breaker?.state({ lane: 'a' })).toBe('isolated')
    const { guards } = await operator.fleet()
    expect(guards[0]?.breakers.map(({ state }) => state)).toContain('isolated')
    await operator.perform({ action: 'release', guard: 'vendor', by: 'dora' })
    expect(await outcomeOf(guard, 'a')).toBe('CIRCUIT_OPEN')
    await operator.perform({ action: 'release', guard: 'vendor', by: 'ada' })
    await soon(guard, 'a').toBe('served')
    await soon(late, 'b').toBe('served')
  })

  it('isolate applies to one lane only, and close ends the isolations of all operators', async () => {
    const { operator, guard } = fleet
    const on = { guard: 'vendor', lane: 'a' } as const
    await operator.perform({ action: 'isolate', ...on, forMs: '10m', by: 'ada' })
    await operator.perform({ action: 'isolate', ...on, forMs: '10m', by: 'ben' })
    await soon(guard, 'a').toBe('CIRCUIT_OPEN')
    expect(await outcomeOf(guard, 'b')).toBe('served')
    await operator.perform({ action: 'reset', ...on, by: 'cleo' })
    expect(await outcomeOf(guard, 'a')).toBe('CIRCUIT_OPEN')
    await operator.perform({ action: 'close', ...on, by: 'cleo' })
    await soon(guard, 'a').toBe('served')
  })

  it('open keeps a breaker open for the given time, and close ends it', async () => {
    const { operator, guard } = fleet
    const on = { guard: 'vendor', lane: 'a', by: 'ada' } as const
    await operator.perform({ action: 'open', ...on, forMs: '10m' })
    await soon(guard, 'a').toBe('CIRCUIT_OPEN')
    const untilMs = guard.breaker?.snapshot({ lane: 'a' }).untilMs ?? 0
    expect(untilMs).toBeGreaterThan(300_000)
    // The breaker is already open, so the new time applies.
    await operator.perform({ action: 'open', ...on, forMs: '1m' })
    await expect
      .poll(() => guard.breaker?.snapshot({ lane: 'a' }).untilMs)
      .toBeLessThanOrEqual(60_000)
    await operator.perform({ action: 'close', ...on })
    await soon(guard, 'a').toBe('served')
  })

  it('pause stops all lanes of a vendor, and resume ends it at once', async () => {
    const { operator, guard } = fleet
    await operator.perform({ action: 'pause', guard: 'vendor', forMs: '10m', by: 'ada' })
    expect(await outcomeOf(guard, 'a')).toBe('VENDOR_LIMITED')
    expect(await outcomeOf(guard, 'never used')).toBe('VENDOR_LIMITED')
    const { guards } = await operator.fleet()
    expect(guards[0]?.limits[0]?.pausedMs).toBeGreaterThan(300_000)
    await operator.perform({ action: 'resume', guard: 'vendor', by: 'ada' })
    // A pod reads the state again after one second at most.
    await expect.poll(() => outcomeOf(guard, 'a')).toBe('served')
    await expect.poll(() => outcomeOf(guard, 'never used')).toBe('served')
  })

  it('pause of one lane may be longer than maxPauseMs', async () => {
    const { operator, guard } = fleet
    const on = { guard: 'vendor', lane: 'a', by: 'ada' } as const
    await operator.perform({ action: 'pause', ...on, forMs: '1h' })
    expect(await outcomeOf(guard, 'a')).toBe('VENDOR_LIMITED')
    expect(await outcomeOf(guard, 'b')).toBe('served')
    await operator.perform({ action: 'resume', ...on })
    await expect.poll(() => outcomeOf(guard, 'a')).toBe('served')
  })

  it('override changes a limit for a while, and restore ends it early', async () => {
    const { operator, guard } = fleet
    const on = { guard: 'vendor', unit: 'requests', by: 'ada' } as const
    const done = await operator.perform({ action: 'override', ...on, limit: 3, forMs: '10m' })
    expect(done.message).toBe('limit on requests is 3 in place of 1000')
    const limitOf = async () => (await operator.fleet()).guards[0]?.limits[0]?.limit
    expect(await limitOf()).toBe(3)
    for (let call = 0; call < 5; call++) await outcomeOf(guard, 'c')
    expect(await outcomeOf(guard, 'c')).toBe('VENDOR_LIMITED')
    await operator.perform({ action: 'restore', ...on })
    expect(await limitOf()).toBe(1_000)
    await expect.poll(() => outcomeOf(guard, 'c')).toBe('served')
  })

  it('performed actions are readable by every process, and rejected ones are not recorded', async () => {
    const { operator, store } = fleet
    await operator.perform({ action: 'pause', guard: 'vendor', forMs: '1s', by: 'ada' })
    await operator.perform({ action: 'resume', guard: 'vendor', lane: 'a', by: 'bob' })
    await operator.perform({ action: 'resume', guard: 'vendro', by: 'eve' }).catch(() => {})
    const recent = await createOperator({ store, guards: {} }).recent()
    expect(recent).toMatchObject([
      { action: 'pause', guard: 'vendor', by: 'ada', forMs: 1_000, lane: undefined, own: true },
      { action: 'resume', guard: 'vendor', by: 'bob', lane: 'a', own: true },
    ])
    expect(new Set(recent.map(({ id }) => id)).size).toBe(2)
  })

  it('every action emits one event with operator, target, duration and result', async () => {
    const { operator } = fleet
    await operator.perform({ action: 'isolate', guard: 'vendor', forMs: '1s', by: ' ada ' })
    const wrong = { action: 'isolate', guard: 'vendro', forMs: '1s', by: 'ada' } as const
    await expect(operator.perform(wrong)).rejects.toThrow(
      "guard: unknown guard 'vendro'; did you mean 'vendor'?",
    )
    expect(events).toMatchObject([
      { name: 'vendor', action: 'isolate', by: 'ada', forMs: 1_000, result: 'done' },
      { name: 'vendro', action: 'isolate', by: 'ada', result: 'refused' },
    ])
  })
})

describe('operator requests', () => {
  const operator = createOperator({ store: memoryStore(), guards: GUARDS })
  it.each([
    [{ action: 'isolat' }, 'action: must be one of'],
    [{ action: 'isolate', guard: 'vendor', by: 'ada' }, 'forMs: must be a duration'],
    [{ action: 'isolate', guard: 'vendor', forMs: '10m' }, 'by: must be a line of 1 to 100'],
    [{ action: 'isolate', guard: 'vendor', forMs: '10m', by: 'a\nb' }, 'by: must be a line'],
    [{ action: 'isolate', guard: 'bare', forMs: '10m', by: 'a' }, "'bare' has no breaker"],
    [{ action: 'pause', guard: 'bare', forMs: '10m', by: 'a' }, "'bare' has no limits"],
    [{ action: 'reset', guard: 'vendor', forms: '10m', by: 'a' }, 'forms: unknown option'],
    [
      { action: 'override', guard: 'vendor', unit: 'token', limit: 1, forMs: '1m', by: 'a' },
      "unit: no limit on 'token'; did you mean 'tokens'?",
    ],
    [
      { action: 'override', guard: 'vendor', unit: 'tokens', limit: 0, forMs: '1m', by: 'a' },
      'limit: must be a positive integer, got 0',
    ],
    [undefined, 'action: must be one of'],
  ])('operator request %j is rejected with a reason', async (request, message) => {
    await expect(operator.perform(request as OperatorRequest)).rejects.toThrow(message)
  })

  it('an action during an outage fails with STORE_UNAVAILABLE and is reported', async () => {
    const server = await startRedis()
    const store = redisStore({ url: server.url, commandTimeoutMs: 10_000 })
    while (!store.ready) await sleep(5)
    await server.kill()
    const seen: SpillwayEvent[] = []
    const stop = onEvent((event) => seen.push(event))
    const away = createOperator({ store, guards: GUARDS })
    const request = { action: 'reset', guard: 'vendor', by: 'ada' } as const
    await expect(away.perform(request)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await expect(away.fleet()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(seen).toMatchObject([{ type: 'operator.acted', result: 'failed' }])
    stop()
    await store.close()
  })
})
