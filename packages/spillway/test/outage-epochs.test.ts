// test-group: io, slow

/** Store epochs: both stores have to behave the same, and a real server is tested as well. */
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { systemClock } from '../src/core/time/clock.js'
import { createSpillway } from '../src/index.js'
import { createKeys } from '../src/store/keys.js'
import { createMemoryPulses } from '../src/store/memory/memory-pulses.js'
import type { PulsePart, PulseStore } from '../src/store/port.js'
import { createScriptRunner, type ScriptRunner } from '../src/store/redis/connection/runner.js'
import { redisStore } from '../src/store/redis/index.js'
import { createRedisPulses } from '../src/store/redis/operations/redis-pulses.js'
import { type RedisServer, startRedis } from './redis-server.js'
import { connectTestRedis } from './test-connection.js'

let server: RedisServer
let runner: ScriptRunner
beforeAll(async () => {
  server = await startRedis()
  const client = connectTestRedis({ url: server.url })
  runner = createScriptRunner(client, { commandTimeoutMs: 5_000, clock: systemClock })
  await vi.waitUntil(() => client.ready, { timeout: 5_000 })
})
afterAll(async () => {
  await runner.close()
  await server.stop()
})

const SECOND = 1_000_000
let stores = 0

describe.each(['memory', 'redis'])('store epochs in %s', (kind) => {
  function setup() {
    let nowUs = 1_900_000_000_000_000
    const create = (): PulseStore =>
      kind === 'memory'
        ? createMemoryPulses(() => nowUs)
        : createRedisPulses(runner, createKeys(`e${stores++}-`), () => String(nowUs))
    const store = create()
    const pulse = async (pod: string, part: PulsePart = 'joined', epoch = '', count = 0) =>
      store.pulse({ guard: 'g', pod, part, epoch, count, fresh: `epoch-of-${pod}` })
    const pass = (us: number) => {
      nowUs += us
    }
    return { pulse, pass, now: () => nowUs }
  }

  it('the first pod sets the epoch and nothing counts as lost', async () => {
    const { pulse } = setup()
    expect(await pulse('a')).toMatchObject({ epoch: 'epoch-of-a', count: 1, lostUs: 0, pods: 1 })
    expect(await pulse('b')).toMatchObject({ epoch: 'epoch-of-a', count: 2, lostUs: 0, pods: 2 })
  })

  it('a new epoch begins when the store is behind what a pod has seen', async () => {
    const { pulse, now } = setup()
    const { epoch, count } = await pulse('a')
    const lost = await pulse('b', 'joined', epoch, count + 5)
    expect(lost).toMatchObject({ epoch: 'epoch-of-b', count: 1, lostUs: now() })
    // The other pod learns of it, although it has seen no later state.
    expect(await pulse('a', 'joined', epoch, count)).toMatchObject({ epoch: 'epoch-of-b' })
  })

  it('a pod that knew another epoch reports a loss soon after a new epoch began', async () => {
    const { pulse, pass, now } = setup()
    // A new pod was faster than the pods that know the lost epoch.
    expect(await pulse('new')).toMatchObject({ lostUs: 0 })
    pass(SECOND)
    const lostUs = now()
    expect(await pulse('old', 'untrusted', 'epoch-before', 100)).toMatchObject({ lostUs })
    expect(await pulse('new', 'joined', 'epoch-of-new', 1)).toMatchObject({ lostUs })
    pass(60 * SECOND)
    expect(await pulse('very-old', 'untrusted', 'epoch-long-ago', 7)).toMatchObject({ lostUs })
  })

  it('one pod that was cut off for long does not make the fleet distrust the store', async () => {
    const { pulse, pass } = setup()
    await pulse('a')
    pass(60 * SECOND)
    expect(await pulse('b', 'untrusted', 'epoch-long-ago', 7)).toMatchObject({ lostUs: 0 })
  })

  it('shares of silent or separated pods are reserved for a while', async () => {
    const { pulse, pass } = setup()
    await pulse('a')
    await pulse('b', 'untrusted')
    await pulse('guest', 'guest')
    expect(await pulse('c')).toMatchObject({ joined: 2, pods: 3, rank: 2 })
    pass(2.6 * SECOND)
    expect(await pulse('c')).toMatchObject({ joined: 1, pods: 3 })
    pass(25 * SECOND)
    expect(await pulse('c')).toMatchObject({ joined: 1, pods: 2 })
    pass(3 * SECOND)
    expect(await pulse('c')).toMatchObject({ joined: 1, pods: 1, rank: 0 })
    await pulse('d')
    expect(await pulse('d', 'gone')).toMatchObject({ pods: 1 })
  })
})

describe('store epochs on a real server', () => {
  const podOn = (url: string) => {
    const store = redisStore({ url })
    const spillway = createSpillway({ store, expectedPods: 2 })
    const guard = spillway.guard('vendor', {
      limits: [{ limit: 10, windowMs: 1_000 }],
      breaker: {},
      userLimits: [{ per: 'user', limit: 5, windowMs: '1m' }],
    })
    onTestFinished(async () => {
      await spillway.close({ graceMs: 0 })
      await store.close()
    })
    return { guard, spillway, status: () => guard.snapshot().store?.status }
  }

  it('a pod starts without an absent server and joins it when it appears', async () => {
    const first = await startRedis()
    const { port } = first
    await first.stop()
    const { guard, status, spillway } = podOn(`redis://127.0.0.1:${port}`)
    expect(await guard.run(() => 'fine', { user: 'ann' })).toBe('fine')
    expect(status()).toBe('unreachable')
    expect(spillway.health().problems.join()).toMatch(
      /the store has never answered: this pod assumes 2 pods/,
    )
    const second = await startRedis({ port })
    onTestFinished(() => second.stop())
    await vi.waitUntil(() => status() === 'shared', { timeout: 4_000 })
    expect(await guard.run(() => 'fine', { user: 'ann' })).toBe('fine')
    expect(spillway.health().status).toBe('ok')
  })

  it('a flushed server counts as a new epoch from the next heartbeat on', async () => {
    const own = await startRedis()
    onTestFinished(() => own.stop())
    const { guard, status } = podOn(own.url)
    await vi.waitUntil(() => status() === 'shared', { timeout: 4_000 })
    await guard.run(() => 'fine')
    await own.send('FLUSHALL')
    await vi.waitUntil(() => status() === 'untrusted', { timeout: 4_000, interval: 10 })
    expect(await guard.run(() => 'fine')).toBe('fine')
    await vi.waitUntil(() => status() === 'shared', { timeout: 5_000 })
  })

  it('a restarted server counts as a new epoch even if it has kept its data', async () => {
    const own = await startRedis()
    const { guard, status } = podOn(own.url)
    await vi.waitUntil(() => status() === 'shared', { timeout: 4_000 })
    await guard.run(() => 'fine')
    const { port } = own
    await own.kill()
    await vi.waitUntil(() => status() === 'unreachable', { timeout: 4_000 })
    expect(await guard.run(() => 'fine')).toBe('fine')
    const next = await startRedis({ port })
    onTestFinished(() => next.stop())
    await vi.waitUntil(() => status() === 'untrusted', { timeout: 4_000, interval: 10 })
    await vi.waitUntil(() => status() === 'shared', { timeout: 5_000 })
  })
})
