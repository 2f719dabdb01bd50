// test-group: sockets, slow

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { onEvent, type SpillwayEvent } from '../../../spillway/src/index.js'
import { memoryStore } from '../../../spillway/src/store/memory/memory-store.js'
import type { Store } from '../../../spillway/src/store/port.js'
import { type Pod, startPod } from './dashboard-kit.js'

const TOKEN = 'a-token-of-some-length'
const GUARD = {
  breaker: { consecutiveFailures: 3, openMs: '30s' },
  limits: [{ unit: 'requests', limit: 100, windowMs: '1h' }],
} as const

let store: Store
let acting: Pod
let other: Pod
let events: SpillwayEvent[]
let stop: () => void

beforeEach(async () => {
  store = memoryStore()
  acting = await startPod({ store, pod: 'first', token: TOKEN })
  other = await startPod({ store, pod: 'other', token: TOKEN })
  for (const { spillway } of [acting, other]) spillway.guard('openai', GUARD)
  events = []
  stop = onEvent((event) => events.push(event))
})
afterEach(async () => {
  stop()
  await store.close()
})

const withToken = { authorization: `Bearer ${TOKEN}` }
const run = (pod: Pod, lane = 'gpt') => pod.spillway.guard('openai').run(() => 'fine', { lane })
const audit = () => events.filter(({ type }) => type === 'operator.acted')

describe('dashboard operator actions', () => {
  it('isolate and reset through one pod apply to all pods', async () => {
    await run(other)
    const act = { act: 'isolate', guard: 'openai', forMs: 60_000, why: 'maintenance' }
    expect(await acting.act(act, withToken)).toEqual({
      status: 200,
      body: { ok: true, did: 'isolated all lanes' },
    })
    await expect(run(other)).rejects.toMatchObject({ code: 'CIRCUIT_OPEN' })
    await expect(run(acting, 'another')).rejects.toMatchObject({ code: 'CIRCUIT_OPEN' })
    expect(await other.act({ act: 'reset', guard: 'openai' }, withToken)).toMatchObject({
      status: 200,
    })
    await expect(run(acting)).resolves.toBe('fine')
    expect(audit()).toMatchObject([
      { action: 'isolate', name: 'openai', by: 'dashboard', from: '127.0.0.1', result: 'done' },
      { action: 'close', result: 'done' },
    ])
  })

  it('pause applies to one lane only', async () => {
    const act = { act: 'pause', guard: 'openai', lane: 'gpt', forMs: 60_000 }
    expect(await acting.act(act, withToken)).toMatchObject({ status: 200 })
    await expect(run(other)).rejects.toMatchObject({ code: 'VENDOR_LIMITED' })
    await expect(run(other, 'another')).resolves.toBe('fine')
  })

  it('an action finds a lane by its masked or shortened name unless that is ambiguous', async () => {
    const keyed = 'sk-proj-0123456789abcdef'
    const long = 'x'.repeat(300)
    await run(acting, keyed)
    await run(acting, long)
    const pause = (lane: string) =>
      acting.act({ act: 'pause', guard: 'openai', lane, forMs: 60_000 }, withToken)
    const reader = await acting.read()
    const tick = await reader.until('guards', ({ guards }) => guards[0]?.lanes.length === 2)
    const lanes = tick.guards[0]?.lanes.map(({ lane }) => lane) ?? []
    expect(lanes).not.toContain(keyed)
    for (const lane of lanes) expect(await pause(lane)).toMatchObject({ status: 200 })
    await expect(run(other, keyed)).rejects.toMatchObject({ code: 'VENDOR_LIMITED' })
    await expect(run(other, long)).rejects.toMatchObject({ code: 'VENDOR_LIMITED' })
    await run(acting, 'sk-proj-another-key-of-ann-lee1')
    expect(await pause('sk-…')).toMatchObject({ status: 409 })
    expect(await pause('gh-…')).toMatchObject({ status: 404 })
    expect(await pause('used-elsewhere')).toMatchObject({ status: 200 })
    expect(audit().filter((each) => 'result' in each && each.result === 'refused')).toHaveLength(2)
  })

  it('replay finds a job queue by its masked name', async () => {
    const queue = acting.spillway.jobQueue('sk-proj-0123456789abcdef', { guard: 'openai' })
    expect(queue).toBeDefined()
    expect(
      (
        await fetch(`${acting.url}/dead?queue=${encodeURIComponent('sk-…')}`, {
          headers: withToken,
        })
      ).status,
    ).toBe(200)
    expect(await acting.act({ act: 'replay', queue: 'sk-…' }, withToken)).toMatchObject({
      body: { did: 'put back 0 dead letters' },
    })
  })

  it('limit changes a limit for a while, and the page shows the usual one', async () => {
    const reader = await other.read()
    await run(other)
    const act = { act: 'limit', guard: 'openai', id: 'requests', limit: 40, forMs: 60_000 }
    expect(await acting.act(act, withToken)).toMatchObject({
      status: 200,
      body: { did: 'limit on requests is 40 in place of 100' },
    })
    const tick = await reader.until(
      'guards',
      ({ guards }) => guards[0]?.lanes[0]?.limits[0]?.limit === 40,
    )
    expect(tick.guards[0]?.lanes[0]?.limits[0]).toMatchObject({ usual: 100, used: 1 })
  })

  it('drain reaches the pod with one of its next heartbeats and is reported', async () => {
    const reader = await acting.read()
    const { pod } = other.spillway
    expect(await acting.act({ act: 'drain', pod }, withToken)).toMatchObject({
      status: 200,
      body: { ok: true },
    })
    await vi.waitUntil(() => events.some(({ type }) => type === 'pod.command'), 10_000)
    expect(events.filter(({ type }) => type === 'pod.command')).toEqual([
      { type: 'pod.command', name: pod, command: 'drain', by: 'dashboard, 127.0.0.1' },
    ])
    const fleet = await reader.until('fleet', ({ pods }) =>
      pods.some(({ state }) => state === 'drain-requested'),
    )
    expect(fleet.pods.find(({ state }) => state === 'drain-requested')?.pod).toBe(pod)
    expect(await acting.act({ act: 'drain', pod: 'unknown' }, withToken)).toMatchObject({
      status: 404,
    })
  })

  it('replay puts dead letters back into the job queue', async () => {
    const queue = acting.spillway.jobQueue('mail', { guard: 'openai', attempts: 1 })
    await queue.add({ body: 'secret words' })
    const worker = queue.work(() => Promise.reject(new Error('secret error')))
    await vi.waitUntil(async () => (await queue.counts()).dead === 1, 5_000)
    await worker.close()
    const reader = await acting.read()
    const tick = await reader.until('jobQueues', ({ jobQueues }) => jobQueues[0]?.dead === 1)
    expect(tick.jobQueues[0]).toMatchObject({ name: 'mail', guard: 'openai', waiting: 0 })
    const response = await fetch(`${acting.url}/dead?queue=mail`, { headers: withToken })
    const letters = await response.text()
    expect(JSON.parse(letters)).toMatchObject({
      queue: 'mail',
      letters: [{ attempt: 1, attempts: 1 }],
    })
    expect(letters + reader.text).not.toContain('secret')
    expect(await acting.act({ act: 'replay', queue: 'mail' }, withToken)).toMatchObject({
      body: { did: 'put back 1 dead letter' },
    })
    expect((await queue.counts()).dead).toBe(0)
    expect(await acting.act({ act: 'replay', queue: 'none' }, withToken)).toMatchObject({
      status: 404,
    })
  })

  it('an action appears on the pages of all pods', async () => {
    const reader = await acting.read()
    await reader.until('guards')
    const elsewhere = await other.read()
    await acting.act({ act: 'isolate', guard: 'openai', lane: 'gpt', forMs: 1_000 }, withToken)
    const note = await reader.until('act')
    expect(note).toMatchObject({
      act: 'isolate',
      on: 'openai / gpt',
      did: 'isolated lane gpt',
      ok: true,
      by: 'dashboard, 127.0.0.1',
    })
    const later = await acting.read()
    expect(await later.until('act')).toEqual(note)
    expect(await elsewhere.until('act')).toEqual(note)
    await elsewhere.until('fleet', ({ at }) => at > note.at + 2_000)
    expect(elsewhere.all('act')).toHaveLength(1)
    expect(reader.text).not.toContain(TOKEN)
  })
})

describe('rejected operator actions', () => {
  it('an action without the token is refused and changes nothing', async () => {
    const act = { act: 'isolate', guard: 'openai', forMs: 60_000 }
    expect(await acting.act(act, { origin: acting.url })).toMatchObject({ status: 401 })
    expect(await acting.act(act, { authorization: 'Bearer nonsense' })).toMatchObject({
      status: 401,
    })
    await expect(run(acting)).resolves.toBe('fine')
    expect(audit()).toMatchObject([
      { action: 'act', from: '127.0.0.1', result: 'refused' },
      { action: 'act', result: 'refused' },
    ])
    expect(JSON.stringify(audit())).not.toContain('nonsense')
  })

  it.each([
    [{ act: 'explode' }, 400, 'act: must be one of'],
    [null, 400, 'act:'],
    [[], 400, 'act:'],
    [{ act: 'isolate', guard: 'openai' }, 400, 'act.forMs'],
    [{ act: 'isolate', guard: 'openai', forMs: -1 }, 400, 'act.forMs'],
    [{ act: 'isolate', guard: 'openai', forMs: 1e15 }, 400, 'act.forMs'],
    [{ act: 'isolate', guard: 'unknown', forMs: 1_000 }, 404, "unknown guard 'unknown'"],
    [
      { act: 'limit', guard: 'openai', id: 'tokens', limit: 5, forMs: 1_000 },
      400,
      "no limit on 'tokens'",
    ],
    [{ act: 'limit', guard: 'openai', id: 'requests', limit: 0, forMs: 1_000 }, 400, 'act.limit'],
    [{ act: 'isolate', guard: 'openai', forMs: 1_000, lanes: 'x' }, 400, 'lane'],
    [{ act: 'demo', load: true }, 404, 'no demo'],
  ])('the invalid action %j is refused with a reason', async (act, status, problem) => {
    const answer = await acting.act(act as object, withToken)
    expect(answer.status).toBe(status)
    expect(answer.body).toMatchObject({ ok: false, problem: expect.stringContaining(problem) })
    expect(audit()).toMatchObject([
      { from: '127.0.0.1', result: 'refused', message: expect.stringContaining(problem) },
    ])
  })

  it('an action is refused unless it is JSON of limited size', async () => {
    const post = async (body: string, type: string) =>
      (
        await fetch(`${acting.url}/act`, {
          method: 'POST',
          body,
          headers: { 'content-type': type, ...withToken },
        })
      ).status
    expect(await post('{"act":"isolate"', 'application/json')).toBe(400)
    expect(await post('act=isolate', 'application/x-www-form-urlencoded')).toBe(415)
    expect(await post('{"act":"reset","guard":"openai"}', 'text/plain')).toBe(415)
    expect(await post(`"${'x'.repeat(100_000)}"`, 'application/json')).toBe(413)
    expect(audit().map((each) => 'result' in each && each.result)).toEqual(Array(4).fill('refused'))
  })

  it('a dashboard token shorter than 16 characters is rejected', async () => {
    await expect(startPod({ token: 'short' })).rejects.toThrow(
      'dashboard.token: must have at least 16',
    )
  })
})
