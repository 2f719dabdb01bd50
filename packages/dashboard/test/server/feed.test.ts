// test-group: sockets, slow

import { once } from 'node:events'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { internalsOf } from '../../../spillway/src/guard/internals.js'
import { ORDER } from '../../../spillway/src/guard/pipeline/stages.js'
import { memoryStore } from '../../../spillway/src/store/memory/memory-store.js'
import { GuardWatch } from '../../src/feed/guard-watch.js'
import { startPod } from './dashboard-kit.js'

const WAITING = { timeout: 15_000, interval: 50 }

const GUARD = {
  shed: { maxQueue: 100 },
  userLimits: [{ per: 'user', limit: 5, windowMs: '1h' }],
  // On a busy machine calls wait for a long time even without overload.
  queue: { size: 10, timeoutMs: '1m' },
  breaker: { consecutiveFailures: 3, openMs: '30s' },
  limits: [{ unit: 'requests', limit: 100, windowMs: '1h' }],
  concurrency: { limit: 2 },
  retry: { attempts: 2 },
} as const

describe('dashboard feed', () => {
  it('feed has the decisions of its peers beside its own, each with its pod', async () => {
    const beta = await startPod({ pod: 'beta' })
    const peers = {
      async decisions({ beta: cursor }: Readonly<Record<string, string>>) {
        const page = beta.dashboard.decisions(cursor)
        return { ...page, cursors: { beta: page.cursor }, records: page.records.toReversed() }
      },
    }
    const alpha = await startPod({ pod: 'alpha', peers })
    for (const { spillway } of [alpha, beta])
      spillway.guard('openai', { concurrency: { limit: 2 } })
    const idsOf = (from: Awaited<ReturnType<typeof alpha.read>>) =>
      from.all('decisions').flatMap((each) => each.records.map(({ pod, id }) => `${pod} ${id}`))
    /** Only some calls are recorded, so the user calls until one of its calls is shown. */
    const shows = (from: typeof reader, pod: typeof alpha, user: string) =>
      vi.waitFor(async () => {
        await pod.spillway.guard('openai').run(() => 'fine', { user })
        const records = from.all('decisions').flatMap((each) => each.records)
        const found = records.find((each) => each.user === user)
        expect(found?.pod).toMatch(pod === alpha ? /^alpha-/ : /^beta-/)
      }, WAITING)
    const reader = await alpha.read()
    await shows(reader, beta, 'theirs')
    await shows(reader, alpha, 'own')
    expect(reader.last('hello')).toMatchObject({ hasPeers: true })
    // A reader that comes later gets them as well, and one that returns none twice.
    const later = await alpha.read()
    const { records } = await later.until('decisions')
    const users = records.map(({ user }) => user)
    expect(users).toEqual(expect.arrayContaining(['own', 'theirs']))
    const before = idsOf(reader)
    const returned = await alpha.read({ 'last-event-id': reader.lastId })
    reader.close()
    await shows(returned, beta, 'last')
    const all = [...before, ...idsOf(returned)]
    expect(all).toHaveLength(new Set(all).size)
  })

  it('feed begins with the built-in stages and the guards with their options', async () => {
    const pod = await startPod({ pod: 'alpha' })
    const sliding = { algorithm: 'sliding-window', windowMs: '1h' } as const
    pod.spillway.guard('openai', {
      ...GUARD,
      userLimits: [...GUARD.userLimits, { per: 'ip', limit: 9, ...sliding }],
    })
    const reader = await pod.read()
    const hello = await reader.until('hello', ({ guards }) => guards.length === 1)
    expect(reader.messages[0]?.name).toBe('hello')
    expect(hello.stages).toEqual(ORDER)
    expect(hello.pod).toMatch(/^alpha-/)
    expect(hello.acts).toBe('open')
    expect(hello.guards[0]).toMatchObject({
      name: 'openai',
      on: [
        'shed',
        'user-limit',
        'queue',
        'breaker',
        'vendor-limit',
        'concurrency',
        'call',
        'retry',
      ],
      breaker: { consecutiveFailures: 3, openMs: 30_000, probes: 3, per: 'lane' },
      userLimits: [
        { per: 'user', limit: 5, windowMs: 3_600_000 },
        { per: 'ip', limit: 9, windowMs: 3_600_000, sliding: true },
      ],
      limits: [{ id: 'requests', limit: 100, windowMs: 3_600_000 }],
      concurrency: { limit: 2, adaptive: false },
    })
  })

  it('feed counts every call once by stage and code, however many ticks it takes', async () => {
    const pod = await startPod()
    const guard = pod.spillway.guard('openai', GUARD)
    const reader = await pod.read()
    await reader.until('guards')
    const run = (user: string) => guard.run(() => 'fine', { user, lane: 'gpt' }).catch(() => {})
    for (let call = 0; call < 8; call++) await run('ada')
    for (let call = 0; call < 4; call++) await run('grace')
    const sums = await vi.waitFor(() => {
      const flows = reader.all('guards').flatMap(({ guards }) => guards.map(({ flow }) => flow))
      const calls = flows.reduce((sum, flow) => sum + flow.calls, 0)
      if (calls < 12) throw new Error(`${calls} calls so far`)
      const refused = flows.flatMap((flow) => flow.refused)
      return { calls, refused, done: flows.reduce((sum, flow) => sum + flow.outcomes.success, 0) }
    })
    expect(sums.calls).toBe(12)
    expect(sums.done).toBe(9)
    expect(sums.refused).toEqual([{ stage: 'user-limit', code: 'USER_LIMITED', count: 3 }])
    const tick = reader.all('guards').flatMap(({ guards }) => guards)
    const lane = tick.find(({ lanes }) => lanes.some(({ flow }) => (flow?.calls ?? 0) > 0))
      ?.lanes[0]
    expect(lane).toMatchObject({ lane: 'gpt', breaker: { state: 'closed' } })
    const last = reader.last('guards')?.guards[0]?.lanes[0]
    expect(last?.limits).toMatchObject([{ id: 'requests', limit: 100, used: 9, remaining: 91 }])
  })

  it('feed names the sub-window of a limit in words', async () => {
    const pod = await startPod()
    const limits = [{ limit: 60, windowMs: '1m', subWindowMs: '10s' }] as const
    const guard = pod.spillway.guard('openai', { limits })
    const reader = await pod.read()
    await guard.run(() => 'fine')
    await vi.waitFor(() => {
      const [lane] = reader.last('guards')?.guards[0]?.lanes ?? []
      expect(lane?.limits.map(({ id, label }) => [id, label])).toEqual([
        ['requests', 'requests'],
        ['requests/10s', 'requests within 10s'],
      ])
    })
  })

  it('feed compares reserved with actual costs of each unit', async () => {
    const pod = await startPod()
    const limits = [{ unit: 'tokens', limit: 1_000, windowMs: '1h' }] as const
    const guard = pod.spillway.guard('openai', { limits })
    const reader = await pod.read()
    expect((await reader.until('guards')).guards[0]?.estimates).toBeUndefined()
    for (const tokens of [10, 40]) {
      await guard.run(({ settle }) => settle({ tokens: 10 }), { cost: { tokens } })
    }
    await vi.waitFor(() => {
      const [estimate] = reader.last('guards')?.guards[0]?.estimates ?? []
      expect(estimate).toEqual({
        unit: 'tokens',
        calls: 2,
        ratio: expect.closeTo(2.5, 1),
        near: 0.5,
      })
    }, WAITING)
  })

  it('feed shows waiting and running calls by priority', async () => {
    const pod = await startPod()
    const guard = pod.spillway.guard('openai', GUARD)
    const free: (() => void)[] = []
    const held = () => new Promise<void>((resolve) => free.push(resolve))
    const calls = ['high', 'normal', 'normal', 'low'].map((priority) =>
      guard.run(held, { priority: priority as 'high' }),
    )
    const reader = await pod.read()
    const tick = await reader.until('guards', ({ guards }) => guards[0]?.queue.waiting === 2)
    expect(tick.guards[0]).toMatchObject({
      slots: { active: 2, limit: 2 },
      queue: { waiting: 2, size: 10, byPriority: [0, 0, 1, 1] },
    })
    while (free.length > 0 || guard.snapshot().active > 0) {
      free.shift()?.()
      await sleep(1)
    }
    await Promise.all(calls)
  })

  it('feed shows waiting jobs per tenant and priority with bounded text', async () => {
    const pod = await startPod()
    pod.spillway.guard('openai', GUARD)
    const queue = pod.spillway.jobQueue<string>('night', { guard: 'openai' })
    const add = (tenant: string, count: number, priority: 'high' | 'low') =>
      queue.addMany(
        Array.from({ length: count }, () => ({ data: '', ...(tenant && { tenant }), priority })),
      )
    await add('<script>alert(1)</script>', 5, 'high')
    await add('<script>alert(1)</script>', 3, 'low')
    await add('sk-live-0123456789abcdef', 4, 'low')
    await add('x'.repeat(500), 3, 'low')
    await add('', 2, 'high')
    for (let tenant = 0; tenant < 6; tenant++) await add(`t${tenant}`, 1, 'low')
    const reader = await pod.read()
    const { jobQueues } = await reader.until('jobQueues')
    expect(jobQueues[0]).toMatchObject({ lane: 'default', waiting: 23, byPriority: [0, 7, 0, 16] })
    expect(jobQueues[0]?.byTenant).toEqual({
      top: [
        { tenant: '<script>alert(1)</script>', waiting: 8, byPriority: [0, 5, 0, 3] },
        { tenant: 'sk-…', waiting: 4, byPriority: [0, 0, 0, 4] },
        // A longer name is kept as its hash.
        { tenant: expect.stringMatching(/^sha256:/), waiting: 3, byPriority: [0, 0, 0, 3] },
        { tenant: '', waiting: 2, byPriority: [0, 2, 0, 0] },
        ...['t0', 't1', 't2', 't3'].map((tenant) => {
          return { tenant, waiting: 1, byPriority: [0, 0, 0, 1] }
        }),
      ],
      others: 2,
      othersWaiting: 2,
      exact: true,
    })
  })

  it('a reconnecting reader gets the messages it missed, and a reader of another process all of them', async () => {
    const pod = await startPod()
    const guard = pod.spillway.guard('openai', GUARD)
    const stays = await pod.read()
    const first = await pod.read()
    await guard.run(() => 'fine', { user: 'before' })
    await first.until('decisions', ({ records }) => records.some(({ user }) => user === 'before'))
    await first.until('guards')
    first.close()
    await vi.waitUntil(() => pod.dashboard.readers === 1, 10_000)
    await guard.run(() => 'fine', { user: 'meanwhile' })
    // The history that the closed reader missed begins with the next sample. The first message
    // may still be of a sample taken before the reader closed.
    const samples = stays.all('guards').length
    await vi.waitUntil(() => stays.all('guards').length > samples + 1, 10_000)
    const usersSeen = async (lastId: string) => {
      const reader = await pod.read({ 'last-event-id': lastId })
      const received = await reader.until('decisions')
      await reader.until('guards')
      const steps = reader.all('history').find(({ guard, stepMs }) => guard && stepMs === 1_000)
      return { users: received.records.map(({ user }) => user), from: steps?.fromAt }
    }
    const resumed = await usersSeen(first.lastId)
    expect(resumed.users).toEqual(['meanwhile'])
    const fresh = await usersSeen('another.1.1')
    expect(fresh.users).toEqual(['before', 'meanwhile'])
    expect(resumed.from).toBeGreaterThanOrEqual(fresh.from ?? Number.POSITIVE_INFINITY)
    expect((await usersSeen('\u00ff;drop')).users).toHaveLength(2)
  })

  it('a reader that reconnects during calls gets each decision once', async () => {
    const pod = await startPod()
    const guard = pod.spillway.guard('openai', GUARD)
    const stays = await pod.read()
    await stays.until('guards')
    let calls = 0
    const call = () => guard.run(() => 'fine', { user: `user-${++calls}` })
    await call()
    const ids = (reader: typeof stays) =>
      reader.all('decisions').flatMap(({ records }) => records.map(({ id }) => id))
    await vi.waitUntil(() => ids(stays).length === 1, 10_000)
    const from = stays.lastId
    // The history since then begins with the next sample.
    const ticks = stays.all('guards').length
    await vi.waitUntil(() => stays.all('guards').length > ticks)
    for (let again = 0; again < 5; again++) {
      await call()
      const back = await pod.read({ 'last-event-id': from })
      await call()
      const expected = Array.from({ length: calls - 1 }, (_, index) => index + 2)
      await vi.waitUntil(() => ids(back).length >= expected.length, 10_000)
      expect(ids(back)).toEqual(expected)
      const resumedAt = back.messages.findIndex(({ id }) => id !== undefined)
      expect(back.messages.slice(0, resumedAt).map(({ name }) => name)).toContain('history')
      expect(back.messages.slice(resumedAt).map(({ name }) => name)).not.toContain('history')
      back.close()
    }
  })

  it('feed keeps no reader that has disconnected, sent HEAD or came after close()', async () => {
    const pod = await startPod()
    const head = await fetch(`${pod.url}/events`, { method: 'HEAD' })
    expect(head.headers.get('content-type')).toContain('text/event-stream')
    expect(pod.dashboard.readers).toBe(0)
    const gone = { destroyed: true } as ServerResponse
    const socket = { destroyed: true, remoteAddress: '127.0.0.1' }
    const headers = { host: 'localhost' }
    const from = { socket, headers, method: 'GET', url: '/events' }
    pod.dashboard(from as IncomingMessage, gone)
    expect(pod.dashboard.readers).toBe(0)
    const reader = await pod.read()
    await reader.until('hello')
    expect(pod.dashboard.readers).toBe(1)
    pod.dashboard.close()
    await vi.waitUntil(() => pod.dashboard.readers === 0, 10_000)
    expect((await fetch(`${pod.url}/events`)).status).toBe(503)
    expect(pod.dashboard.readers).toBe(0)
  })

  it('feed explains what each stage decided and what would have admitted a refused call', async () => {
    const pod = await startPod()
    const guard = pod.spillway.guard('openai', GUARD)
    const reader = await pod.read()
    // The log samples a few calls per 100 ms, and a refused one has to be among them.
    await vi.waitUntil(async () => {
      await guard.run(() => 'fine', { user: 'ada', tier: 'pro', lane: 'gpt' }).catch(() => {})
      const records = reader.all('decisions').flatMap((each) => each.records)
      return records.some((record) => record.code === 'USER_LIMITED')
    })
    const decided = async (code: string) => {
      const { records } = await reader.until('decisions', (each) =>
        each.records.some((record) => record.code === code),
      )
      return records.find((record) => record.code === code)
    }
    const fine = await decided('OK')
    expect(fine).toMatchObject({ user: 'ada', tier: 'pro', lane: 'gpt', attempts: 1, traced: true })
    expect(fine?.path.map(({ stage, verdict }) => `${stage} ${verdict}`)).toEqual([
      'shed passed',
      'user-limit passed',
      'queue passed',
      'breaker passed',
      'vendor-limit passed',
      'concurrency passed',
      'call ended',
    ])
    const refused = await decided('USER_LIMITED')
    expect(refused).toMatchObject({
      stage: 'user-limit',
      scope: 'shared',
      numbers: { level: 'user', limit: 5 },
      path: [
        { stage: 'shed', verdict: 'passed' },
        { stage: 'user-limit', verdict: 'refused' },
      ],
    })
    expect(refused?.why).toContain('the limit per user is used up')
    expect(refused?.remedy).toMatch(/^A retry .* min later, or a limit per user above 5 in 1 h/)
  })

  it('feed shows a rare refusal among thousands of others', async () => {
    const pod = await startPod()
    const flooded = pod.spillway.guard('flooded', {
      userLimits: [{ per: 'user', limit: 1, windowMs: '1h' }],
    })
    const rare = pod.spillway.guard('rare', { concurrency: { limit: 1 } })
    const reader = await pod.read()
    await reader.until('guards')
    let unblock = () => {}
    const blocked = new Promise<void>((resolve) => {
      unblock = resolve
    })
    const running = rare.run(() => blocked)
    for (let call = 0; call < 3_000; call++)
      await flooded.run(() => 1, { user: 'u' }).catch(() => {})
    await rare.run(() => 1).catch(() => {})
    const found = await reader.until('decisions', ({ records }) =>
      records.some(({ guard, code }) => guard === 'rare' && code === 'QUEUE_FULL'),
    )
    unblock()
    await running
    expect(found).toBeDefined()
    const records = reader.all('decisions').flatMap((each) => each.records)
    expect(records.length).toBeLessThan(500)
    expect(reader.all('decisions').reduce((sum, { seen }) => sum + seen, 0)).toBeGreaterThan(2_900)
  })

  it('feed shows a breaker opened by another pod at once, with its timeline', async () => {
    const store = memoryStore()
    const [one, other] = [await startPod({ store, pod: 'a' }), await startPod({ store, pod: 'b' })]
    const guard = one.spillway.guard('openai', GUARD)
    other.spillway.guard('openai', GUARD)
    const reader = await other.read()
    await reader.until('hello', ({ guards }) => guards.length === 1)
    const fail = () => Promise.reject(new TypeError('sk-secret in a message'))
    for (let call = 0; call < 3; call++) {
      await guard.run(fail, { lane: 'gpt', idempotent: false }).catch(() => {})
    }
    const transition = await reader.until('transition')
    expect(transition).toMatchObject({ guard: 'openai', lane: 'gpt', from: 'closed', to: 'open' })
    const tick = await reader.until('guards', ({ guards }) =>
      guards.some(({ lanes }) => lanes.some(({ breaker }) => breaker?.state === 'open')),
    )
    // Immediately: before the figures of the next second.
    const names = reader.messages.map(({ name }) => name)
    const nextTick = reader.messages.findIndex(({ data }) => data === tick)
    expect(names.indexOf('transition')).toBeLessThan(nextTick)
    const lane = tick.guards[0]?.lanes.find((each) => each.lane === 'gpt')
    expect(lane?.breaker?.timeline).toMatchObject([{ to: 'open' }])
    expect(lane?.breaker?.untilMs).toBeGreaterThan(0)
    const agreed = await reader.until(
      'fleet',
      ({ pods }) => pods.length === 2 && pods.every(({ guards }) => guards[0]?.[5] === 2),
    )
    expect(agreed.pods.map(({ pod }) => pod[0])).toEqual(['b', 'a'])
    await store.close()
  })

  it('without readers the dashboard only records the last hour', async () => {
    const pod = await startPod()
    pod.spillway.guard('openai', GUARD)
    const inside = internalsOf(pod.spillway)
    const members = vi.spyOn(inside!.membership, 'members')
    const figures = vi.spyOn(inside!.store.limits, 'figures')
    const sampled = vi.spyOn(GuardWatch.prototype, 'sample')
    onTestFinished(() => sampled.mockRestore())
    await vi.waitUntil(() => sampled.mock.calls.length >= 3, 20_000)
    expect(members).not.toHaveBeenCalled()
    expect(figures).not.toHaveBeenCalled()
    const reader = await pod.read()
    const history = await reader.until(
      'history',
      ({ guard, stepMs }) => guard === 'openai' && stepMs === 1_000,
    )
    expect(history.columns.calls?.length).toBeGreaterThanOrEqual(2)
    await vi.waitUntil(() => members.mock.calls.length > 0, 10_000)
    reader.close()
    await vi.waitUntil(() => pod.dashboard.readers === 0, 10_000)
    members.mockClear()
    const before = sampled.mock.calls.length
    await vi.waitUntil(() => sampled.mock.calls.length >= before + 2, 20_000)
    expect(members).not.toHaveBeenCalled()
  })

  it('dashboard answers invalid requests with an error and keeps working', async () => {
    const pod = await startPod()
    const status = async (path: string, init?: RequestInit) =>
      (await fetch(pod.url + path, init)).status
    expect(await status('/')).toBe(200)
    expect(await status('/?x=1')).toBe(200)
    expect(await status('/nowhere')).toBe(404)
    expect(await status('/', { method: 'POST' })).toBe(405)
    expect(await status('/act')).toBe(405)
    expect(await status('/dead?queue=none')).toBe(404)
    expect(await status('//evil.example/x')).toBe(404)
    // Raw requests, because fetch normalises paths.
    const plain = async (path: string) => {
      const [response] = (await once(
        request({ port: pod.port, host: '127.0.0.1', path }).end(),
        'response',
      )) as [IncomingMessage]
      response.resume()
      return response.statusCode
    }
    for (const path of ['//', '//[', '/\\', '//events', '/%', '*']) {
      expect([path, await plain(path)]).toEqual([path, 404])
    }
    expect(await plain('http://elsewhere/?x')).toBe(200)
    expect(await status('/')).toBe(200)
  })

  it('mayRead() decides about read access, and an error in it denies access', async () => {
    const words: Record<string, () => boolean | string> = {
      yes: () => true,
      no: () => false,
      why: () => 'your key is not for this',
      broken: () => {
        throw new Error('no such header')
      },
    }
    const pod = await startPod({
      mayRead: ({ headers }) => words[String(headers['x-word'])]?.() ?? false,
    })
    const look = async (word: string) => {
      const response = await fetch(`${pod.url}/dead?queue=none`, { headers: { 'x-word': word } })
      const { problem } = (await response.json()) as { problem: string }
      return `${response.status} ${problem}`
    }
    expect(await look('yes')).toBe('404 no such job queue')
    expect(await look('no')).toBe('403 access denied')
    expect(await look('broken')).toBe('403 access denied')
    expect(await look('why')).toBe('403 your key is not for this')
    expect(await pod.act({ act: 'demo' }, { origin: pod.url, 'x-word': 'why' })).toMatchObject({
      status: 403,
    })
  })

  it('the page is served compressed with a strict content security policy', async () => {
    const pod = await startPod()
    const response = await fetch(pod.url)
    expect(response.headers.get('content-encoding')).toBe('gzip')
    const policy = response.headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'none'")
    expect(policy).not.toContain('unsafe')
    expect(policy).toContain("frame-ancestors 'none'")
    expect(await response.text()).toContain('<!doctype html>')
  })
})
