// test-group: io, slow

/** Pods on a cluster whose slots move and whose nodes fail. */
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { slotOf } from '../../src/store/redis/topology/slot.js'
import { type RedisCluster, startCluster } from '../redis-cluster.js'
import type { RedisServer } from '../redis-server.js'
import { START_MS } from '../topologies.js'
import { ADD, ADD_TO_BOTH, keepCounting, type Pod, startPods, untilAnswered } from './counting.js'
import { claimEndings } from './process.js'

const DEADLINE_MS = 200
const PATIENCE_MS = 5_000

let cluster: RedisCluster
beforeAll(async () => {
  cluster = await startCluster({ downMs: 1_500 })
}, START_MS)
afterAll(() => cluster.stop())

const connect = (deadlineMs = DEADLINE_MS) => startPods({ urls: cluster.urls.slice(3) }, deadlineMs)

/** A unique tag in a slot of this node. */
let tags = 0
async function tagAt(node: RedisServer): Promise<string> {
  for (;;) {
    const tag = `t${tags++}`
    if ((await cluster.masterOf(`{${tag}}`)).port === node.port) return tag
  }
}

async function twoMasters(): Promise<[RedisServer, RedisServer]> {
  const [one, other] = await cluster.masters()
  return [one as RedisServer, other as RedisServer]
}

/** Moves a slot with all its keys as an operator would, a few keys at a time. */
async function moveSlot(slot: number, from: RedisServer, to: RedisServer, pauseMs = 0) {
  const [fromId, toId] = [await from.send('CLUSTER', 'MYID'), await to.send('CLUSTER', 'MYID')]
  await to.send('CLUSTER', 'SETSLOT', `${slot}`, 'IMPORTING', `${fromId}`)
  await from.send('CLUSTER', 'SETSLOT', `${slot}`, 'MIGRATING', `${toId}`)
  for (;;) {
    const keys = (await from.send('CLUSTER', 'GETKEYSINSLOT', `${slot}`, '20')) as string[]
    if (keys.length === 0) break
    await from.send('MIGRATE', '127.0.0.1', `${to.port}`, '', '0', '5000', 'KEYS', ...keys)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
  for (const node of [to, from, ...(await cluster.masters())]) {
    await node.send('CLUSTER', 'SETSLOT', `${slot}`, 'NODE', `${toId}`)
  }
}

describe.concurrent('process on a cluster', () => {
  claimEndings(() => ({ urls: cluster.urls }))
})

describe('moving slot', () => {
  it('commands follow a moving slot: none fails, none is lost and none runs twice', async () => {
    // A busy machine must not look like a lost command.
    const pods = await connect(PATIENCE_MS)
    const [from, to] = await twoMasters()
    const tag = await tagAt(from)
    const counting = keepCounting(pods, tag, PATIENCE_MS)
    await vi.waitUntil(() => counting.tally.replies.length > 200)
    await moveSlot(slotOf(`{${tag}}`), from, to, 10)
    const before = counting.tally.replies.length
    await vi.waitUntil(() => counting.tally.replies.length > before + 200)
    const { keys, replies, failures } = await counting.stop()
    expect(failures).toEqual([])
    expect(new Set(replies)).toEqual(new Set([1]))
    expect(replies).toHaveLength(keys.length)
    expect((await cluster.masterOf(`{${tag}}`)).port).toBe(to.port)
    expect(new Set((await to.send('MGET', ...keys)) as string[])).toEqual(new Set(['1']))
  })

  it('scripts with several keys wait for a moving slot no longer than their deadline', async () => {
    const pods = await connect()
    const [from, to] = await twoMasters()
    const tag = await tagAt(from)
    const counting = keepCounting(pods, tag, DEADLINE_MS, ADD_TO_BOTH)
    await vi.waitUntil(() => counting.tally.replies.length > 100)
    await moveSlot(slotOf(`{${tag}}`), from, to)
    const before = counting.tally.replies.length
    await vi.waitUntil(() => counting.tally.replies.length > before + 100)
    const tally = await counting.stop()
    const { keys, replies } = tally
    expect(tally.overdue).toBe(0)
    expect(new Set(replies)).toEqual(new Set([1]))
    const values = (await to.send('MGET', ...keys)) as (string | null)[]
    expect(values.filter((value) => value !== '1' && value !== null)).toEqual([])
  })
})

describe('node without scripts', () => {
  it('only the node that lost its scripts gets the script text', async () => {
    const pods = await connect()
    const [one, other] = await twoMasters()
    const [here, there] = [await tagAt(one), await tagAt(other)]
    for (const { runner } of pods) {
      await runner.run(ADD, [`{${here}}:n`], [])
      await runner.run(ADD, [`{${there}}:n`], [])
    }
    await one.send('SCRIPT', 'FLUSH')
    const [{ runner }] = pods as [Pod]
    const before = runner.commands
    expect(await runner.run(ADD, [`{${here}}:n`], [])).toBe(pods.length + 1)
    expect(await runner.run(ADD, [`{${there}}:n`], [])).toBe(pods.length + 1)
    expect(runner.commands - before).toBe(3)
  })
})

describe('publishing in a cluster', () => {
  it('a message published on one node reaches every pod, whichever node it listens to', async () => {
    const pods = await connect()
    const received = pods.map(() => new Set<string>())
    let gaps = 0
    for (const [index, { client }] of pods.entries()) {
      const subscription = client.subscribe('news', {
        onMessage: (text) => received[index]?.add(text),
        onSubscribed: () => void gaps++,
      })
      onTestFinished(() => subscription.close())
    }
    await vi.waitUntil(() => gaps === pods.length, { timeout: 5_000 })
    const masters = await cluster.masters()
    for (const { port, send } of masters) await send('PUBLISH', 'news', `from ${port}`)
    const published = new Set(masters.map(({ port }) => `from ${port}`))
    await expect.poll(() => received).toEqual(pods.map(() => published))
  })
})

describe('hanging node', () => {
  it('a hanging node does not delay commands to other nodes', async () => {
    const [pods, patient] = [await connect(), await connect(PATIENCE_MS)]
    const [one, other] = await twoMasters()
    const [here, there] = [await tagAt(one), await tagAt(other)]
    const stuck = keepCounting(pods, here, DEADLINE_MS)
    const well = keepCounting(patient, there, PATIENCE_MS)
    await vi.waitUntil(() => well.tally.replies.length > 50)
    one.pause()
    onTestFinished(() => one.resume())
    await vi.waitUntil(() => stuck.tally.failures.length >= pods.length)
    const before = well.tally.replies.length
    await vi.waitUntil(() => well.tally.replies.length > before + 50)
    one.resume()
    const elsewhere = await well.stop()
    expect(elsewhere.failures).toEqual([])
    const tally = await stuck.stop()
    expect(tally.overdue).toBe(0)
    expect(new Set(tally.failures.map(({ kind }) => kind))).toEqual(new Set(['ambiguous']))
  })
})

// Last, because a node is missing afterwards.
describe('failing cluster master', () => {
  it('a dead cluster master is replaced without a restart, delay or command run twice', async () => {
    const pods = await connect()
    const [one, other] = await twoMasters()
    const [here, there] = [await tagAt(one), await tagAt(other)]
    const counting = keepCounting(pods, here, DEADLINE_MS)
    const elsewhere = keepCounting(pods, there, DEADLINE_MS)
    await vi.waitUntil(() => counting.tally.replies.length > 100)
    await one.kill()
    await untilAnswered(pods, `{${here}}:again`)
    const tally = await counting.stop()
    const { keys, replies } = tally
    await elsewhere.stop()
    expect(tally.overdue).toBe(0)
    expect(new Set(replies)).toEqual(new Set([1]))
    const successor = await cluster.masterOf(`{${here}}`)
    expect(successor.port).not.toBe(one.port)
    const values = (await successor.send('MGET', ...keys)) as (string | null)[]
    expect(values.filter((value) => value !== '1' && value !== null)).toEqual([])
  })
})
