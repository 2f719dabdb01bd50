// test-group: io

/** Live pods: both stores have to give the same replies. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { systemClock } from '../src/core/time/clock.js'
import { createKeys } from '../src/store/keys.js'
import { createMemoryPods } from '../src/store/memory/memory-pods.js'
import type { PodStore } from '../src/store/port.js'
import { createScriptRunner, type ScriptRunner } from '../src/store/redis/connection/runner.js'
import { createRedisPods } from '../src/store/redis/operations/redis-pods.js'
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

describe.each(['memory', 'redis'])('live pods in %s', (kind) => {
  function setup(): { store: PodStore; pass(us: number): void } {
    let nowUs = 1_900_000_000_000_000
    const time = () => String(nowUs)
    const store =
      kind === 'memory'
        ? createMemoryPods(() => nowUs)
        : createRedisPods(runner, createKeys(`t${stores++}-`), time)
    return {
      store,
      pass: (us) => {
        nowUs += us
      },
    }
  }
  const beatOf = (pod: string, lifeUs = 10 * SECOND) => ({ group: 'g', pod, lifeUs, snapshot: '' })

  it('a pod is live until its lifetime has passed without a heartbeat', async () => {
    const { store, pass } = setup()
    expect(await store.beat(beatOf('a'))).toMatchObject({ live: 1 })
    pass(6 * SECOND)
    expect(await store.beat(beatOf('b'))).toMatchObject({ live: 2 })
    pass(4 * SECOND - 1)
    expect((await store.list({ group: 'g' })).map(({ pod }) => pod)).toEqual(['a', 'b'])
    pass(1)
    expect((await store.list({ group: 'g' })).map(({ pod }) => pod)).toEqual(['b'])
    expect(await store.beat(beatOf('b'))).toMatchObject({ live: 1 })
  })

  it('every heartbeat reply carries the pending request to the pod until it expires', async () => {
    const { store, pass } = setup()
    const ask = (pod: string, what: string, forUs = 3 * SECOND) =>
      store.sendCommand({ group: 'g', pod, forUs, command: what })
    expect(await ask('a', 'drain')).toBe(false)
    await store.beat(beatOf('a'))
    await store.beat(beatOf('b'))
    expect(await ask('a', 'one')).toBe(true)
    expect(await ask('a', 'two\nlines, and a \u202e turn')).toBe(true)
    expect(await store.beat(beatOf('b'))).toEqual({ live: 2, command: '' })
    expect(await store.beat(beatOf('a'))).toEqual({
      live: 2,
      command: 'two\nlines, and a \u202e turn',
    })
    pass(3 * SECOND - 1)
    expect(await store.beat(beatOf('a'))).toMatchObject({
      command: 'two\nlines, and a \u202e turn',
    })
    pass(1)
    expect(await store.beat(beatOf('a'))).toEqual({ live: 2, command: '' })
  })

  it('a request to a pod ends when the pod leaves', async () => {
    const { store, pass } = setup()
    await store.beat(beatOf('a'))
    await store.sendCommand({ group: 'g', pod: 'a', forUs: 60 * SECOND, command: 'drain' })
    await store.leave({ group: 'g', pod: 'a' })
    expect(await store.beat(beatOf('a'))).toEqual({ live: 1, command: '' })
    await store.sendCommand({ group: 'g', pod: 'a', forUs: 60 * SECOND, command: 'drain' })
    pass(10 * SECOND)
    expect(await store.sendCommand({ group: 'g', pod: 'a', forUs: SECOND, command: 'drain' })).toBe(
      false,
    )
    expect(await store.beat(beatOf('a'))).toEqual({ live: 1, command: '' })
  })

  it('a pod that leaves disappears at once', async () => {
    const { store } = setup()
    await store.beat(beatOf('a'))
    await store.beat(beatOf('b'))
    await store.leave({ group: 'g', pod: 'a' })
    await store.leave({ group: 'empty group', pod: 'a' })
    expect(await store.beat(beatOf('b'))).toMatchObject({ live: 1 })
  })

  it('list() returns the last snapshot of each pod, whatever its content', async () => {
    const { store, pass } = setup()
    await store.beat({ ...beatOf('__proto__'), snapshot: 'old' })
    pass(SECOND)
    const snapshot = '{"a": "1 2\\n3"}\n\0ü '
    await store.beat({ ...beatOf('__proto__'), snapshot })
    await store.beat(beatOf('1'))
    pass(2 * SECOND)
    expect(await store.list({ group: 'g' })).toEqual([
      { pod: '1', snapshot: '', ageUs: 2 * SECOND },
      { pod: '__proto__', snapshot, ageUs: 2 * SECOND },
    ])
    expect(await store.list({ group: 'other' })).toEqual([])
  })

  it('a clock that is set back does not extend the life of dead pods', async () => {
    const { store, pass } = setup()
    await store.beat(beatOf('dead'))
    await store.beat(beatOf('alive'))
    pass(-3_600 * SECOND)
    expect(await store.beat(beatOf('alive'))).toMatchObject({ live: 1 })
  })

  it('a pod with a long lifetime is not shortened by others', async () => {
    const { store, pass } = setup()
    await store.beat(beatOf('patient', 60 * SECOND))
    expect(await store.beat(beatOf('hasty', SECOND))).toMatchObject({ live: 2 })
    pass(30 * SECOND)
    expect(await store.list({ group: 'g' })).toHaveLength(1)
  })
})

it('pods that leave Redis leave no data behind while others continue', async () => {
  let nowUs = 1_900_000_000_000_000
  const keys = createKeys('churn-')
  const store = createRedisPods(runner, keys, () => String(nowUs))
  for (let pod = 0; pod < 20; pod++) {
    await store.beat({ group: 'g', pod: `p${pod}`, lifeUs: SECOND, snapshot: '' })
    if (pod % 2 === 0) await store.leave({ group: 'g', pod: `p${pod}` })
    nowUs += SECOND
  }
  expect(await server.send('ZCARD', keys.pods('g'))).toBe(1)
  expect(await server.send('HLEN', keys.podSnapshots('g'))).toBe(1)
})

it('pod keys in Redis expire with the longest-lived pod and not with the last heartbeat', async () => {
  const keys = createKeys('ttl-')
  const store = createRedisPods(runner, keys)
  await store.beat({ group: 'g', pod: 'patient', lifeUs: 60 * SECOND, snapshot: '' })
  await store.beat({ group: 'g', pod: 'hasty', lifeUs: SECOND, snapshot: '' })
  for (const key of [keys.pods('g'), keys.podSnapshots('g')]) {
    const leftMs = (await server.send('PTTL', key)) as number
    expect(leftMs).toBeGreaterThan(59_000)
    expect(leftMs).toBeLessThanOrEqual(61_000)
  }
})
