// test-group: io, slow

/** Pods on servers with Sentinels during a failover. */
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { MASTER, startSentinels, type Watched } from '../redis-sentinels.js'
import type { RedisServer } from '../redis-server.js'
import { START_MS } from '../topologies.js'
import { ADD, keepCounting, type Pod, startPods, untilAnswered } from './counting.js'
import { claimEndings } from './process.js'

/** Sentinels close the connections of a server whose role has changed, also those of this test, so it asks again. */
const FAILED_OVER = { timeout: 15_000, interval: 50 }
const DEADLINE_MS = 200
/** Much longer than a failover may take. */
const ASK_AGAIN_MS = 10_000

let watched: Watched
beforeAll(async () => {
  watched = await startSentinels()
}, START_MS)
afterAll(() => watched.stop())

const connect = () => startPods({ sentinels: watched.urls, master: MASTER }, DEADLINE_MS)

/** Records the messages that each pod receives from now on. */
async function recordMessages(pods: readonly Pod[]) {
  const recorders = pods.map(({ client }) => {
    const recorder = { messages: [] as string[], gaps: 0 }
    const subscription = client.subscribe('news', {
      onMessage: (text) => recorder.messages.push(text),
      onSubscribed: () => void recorder.gaps++,
    })
    onTestFinished(() => subscription.close())
    return recorder
  })
  await vi.waitUntil(() => recorders.every(({ gaps }) => gaps > 0), { timeout: 5_000 })
  return recorders
}

async function valuesOf(server: RedisServer, keys: readonly string[]): Promise<unknown[]> {
  return (await server.send('MGET', ...keys)) as unknown[]
}

/** A Sentinel gives a failover up if it takes too long, as it may on a busy machine. Then this asks again. */
async function failOverTo(server: RedisServer): Promise<void> {
  let askedMs = Number.NEGATIVE_INFINITY
  await vi.waitUntil(async () => {
    if ((await watched.master()) === server) return true
    if (performance.now() - askedMs < ASK_AGAIN_MS) return false
    askedMs = performance.now()
    // An error: one is in progress, or the replica has not answered the Sentinel recently.
    await watched.sentinels[0]?.send('SENTINEL', 'FAILOVER', MASTER).catch(() => {})
    return false
  })
}

describe.concurrent('process with Sentinels', () => {
  claimEndings(() => ({ sentinels: watched.urls, master: MASTER }))
})

describe('unknown master name', () => {
  it('an unknown master name is reported as the problem', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue()
    onTestFinished(() => warned.mockRestore())
    const { redisStore } = await import('spillway/redis')
    const store = redisStore({ sentinels: watched.urls, master: 'another' })
    onTestFinished(() => store.close())
    await vi.waitUntil(() => store.problem !== undefined, { timeout: 5_000 })
    const message = "no Sentinel knows a master called 'another': see redis.master"
    expect(store.problem).toMatchObject({ code: 'REDIS_SETUP', message })
    expect(store.ready).toBe(false)
    const code = 'SPILLWAY_STORE_UNREACHABLE'
    const warning = `${message}. Limits and breakers are not shared until it can be used; Spillway keeps trying.`
    expect(warned).toHaveBeenCalledExactlyOnceWith(warning, { type: 'SpillwayWarning', code })
  })
})

describe('Sentinel user', () => {
  it('the Sentinel permissions in the docs are sufficient', async () => {
    const rules = 'on >pw resetchannels &+switch-master -@all +sentinel|master +subscribe +ping'
    for (const { send } of watched.sentinels) {
      await send('ACL', 'SETUSER', 'least', ...rules.split(' '))
    }
    const sentinels = watched.urls.map((url) => url.replace('//', '//least:pw@'))
    const pods = await startPods({ sentinels, master: MASTER }, DEADLINE_MS)
    await untilAnswered(pods, 'user')
    const listening = async () => {
      const lists = await Promise.all(watched.sentinels.map(({ send }) => send('CLIENT', 'LIST')))
      return lists.join().match(/ sub=1 .* user=least/g)
    }
    await expect.poll(listening).toHaveLength(pods.length)
  })
})

describe('replaced master that is still running', () => {
  it('pods leave a replaced master at once and send it no more commands', async () => {
    const pods = await connect()
    const first = await watched.master()
    const [second] = watched.servers.filter((each) => each !== first) as [RedisServer]
    const counting = keepCounting(pods, 'a', DEADLINE_MS)
    await vi.waitUntil(() => counting.tally.replies.length > 50)
    await failOverTo(second)
    // The old master may still answer until it has learnt of the failover.
    await vi.waitUntil(
      async () => {
        await untilAnswered(pods, 'b')
        return Number(await second.send('GET', 'b')) >= pods.length
      },
      { timeout: 15_000 },
    )
    const tally = await counting.stop()
    expect(tally.overdue).toBe(0)
    expect(new Set(tally.replies)).toEqual(new Set([1]))
    // The count at the new master may have been replicated from the old one just before.
    await vi.waitUntil(
      async () => {
        const clients = String(await first.send('CLIENT', 'LIST', 'TYPE', 'normal'))
        return !clients.includes('cmd=evalsha')
      },
      { timeout: 15_000 },
    )
  })
})

describe('failing master', () => {
  it('a dead master is replaced without a restart, delay or command run twice', async () => {
    const pods = await connect()
    const recorders = await recordMessages(pods)
    const counting = keepCounting(pods, 'c', DEADLINE_MS)
    const first = await watched.master()
    const [second] = watched.servers.filter((each) => each !== first) as [RedisServer]
    await vi.waitFor(
      async () =>
        expect(String(await second.send('INFO', 'replication'))).toContain('_link_status:up'),
      FAILED_OVER,
    )
    await vi.waitUntil(() => counting.tally.replies.length > 100)
    // Not earlier: a busy machine must not look like a dead master.
    for (const { send } of watched.sentinels) {
      await send('SENTINEL', 'SET', MASTER, 'down-after-milliseconds', '2000')
    }
    await first.kill()
    await untilAnswered(pods, 'd')
    const before = counting.tally.replies.length
    await vi.waitUntil(() => counting.tally.replies.length > before + 100)
    const tally = await counting.stop()
    const { keys, replies, failures } = tally

    expect(tally.overdue).toBe(0)
    expect(new Set(replies)).toEqual(new Set([1]))
    expect(new Set(failures.map(({ kind }) => kind))).not.toContain('server')
    const master = await watched.master()
    expect(master.port).not.toBe(first.port)
    const counted = await vi.waitFor(() => valuesOf(master, keys), FAILED_OVER)
    expect(new Set(counted)).toEqual(new Set(['1', null]))

    // The subscriptions have moved as well and report a gap.
    await vi.waitUntil(() => recorders.every(({ gaps }) => gaps > 1), { timeout: 10_000 })
    await vi.waitFor(() => master.send('PUBLISH', 'news', 'hello'), FAILED_OVER)
    await vi.waitUntil(() => recorders.every(({ messages }) => messages.includes('hello')))
  })
})

describe('failing Sentinels', () => {
  it('pods find the master although one Sentinel is dead and one hangs', async () => {
    const [one, two] = watched.sentinels
    // The third Sentinel cannot learn of the failover before this test from the others once they are gone.
    await watched.untilAgreed()
    await one?.kill()
    two?.pause()
    const pods = await connect()
    for (const { runner } of pods) {
      const count = () => runner.run(ADD, ['b'], []).catch(() => undefined)
      await expect.poll(count).toBeGreaterThan(0)
    }
  })
})
