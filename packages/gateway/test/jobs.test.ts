// test-group: sockets

/** Async requests: accepted with 202, done later and readable only by their caller. */
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { pauseMs, until } from '../../spillway/test/streams/stream-kit.js'
import { MOST_STREAMS } from '../src/jobs/job-streams.js'
import { startGateway, type Written } from './gateway-kit.js'
import { ASYNC, as, readEvents, readJob, submit, untilStatus } from './jobs-kit.js'

const NIGHT = { vendor: 'openai', model: 'gpt', keep: 0 }
const FAST = { ...NIGHT, baseMs: 10, maxMs: 20 }

const start = (queue: object = {}, written: Written = {}, knobs: object = {}) =>
  startGateway(
    { jobQueues: { night: { ...FAST, ...queue } }, ...written },
    { knobs: { tokens: 3, ...knobs } },
    { ANN: 'key-of-ann', BOB: 'key-of-bob', VENDOR: 'key-of-vendor' },
  )

const CALLERS = [
  { key: 'env:ANN', user: 'ann', tier: 'pro' },
  { key: 'env:BOB', user: 'bob', tier: 'free' },
]

describe('async requests', () => {
  it("an async request is accepted with 202 and an address that later has the vendor's answer", async () => {
    const gateway = await start()
    const { response, document, address } = await submit(gateway)
    expect(response.status).toBe(202)
    expect(response.headers.get('preference-applied')).toBe('respond-async')
    expect(response.headers.get('retry-after')).toBe('2')
    expect(response.headers.get('spillway-decision')).toBe('deferred;queue="night"')
    expect(address).toMatch(/^\/spillway\/jobs\/night\/\d+$/)
    expect(document).toMatchObject({ queue: 'night', links: { self: address } })
    const done = await untilStatus(gateway.url, address, 'done')
    expect(done).toMatchObject({ attempt: 1, answer: { status: 200 } })
    const result = await fetch(`${gateway.url}${done.links.result}`)
    expect(result.status).toBe(200)
    expect(result.headers.get('content-type')).toContain('application/json')
    expect(result.headers.get('spillway-vendor')).toBe('openai')
    const direct = await gateway.chat()
    const [later, now] = (await Promise.all([result.json(), direct.json()])) as [object, object]
    expect(Object.keys(later)).toEqual(Object.keys(now))
    expect(later).toMatchObject({ model: 'gpt', usage: expect.anything() })
    expect(gateway.failures).toEqual([])
  })

  it('an async request with a compressed body of an odd type is stored decoded with its model replaced', async () => {
    const gateway = await start(
      { model: 'replaced' },
      { routes: [{ vendor: 'openai', model: 'replaced' }] },
    )
    const body = gzipSync(' {"messages":[{"role":"user","content":"hi"}],"model":"gpt"}')
    const headers = { ...ASYNC, 'content-type': 'Application/JSON', 'content-encoding': 'gzip' }
    const url = `${gateway.url}/v1/chat/completions`
    const response = await fetch(url, { method: 'POST', headers, body })
    expect(response.status).toBe(202)
    const address = response.headers.get('location') as string
    const { data } = (await jobOf(gateway, address)) as { data: { headers: string[] } }
    expect(data.headers).not.toContain('content-encoding')
    await untilStatus(gateway.url, address, 'done')
    expect(gateway.vendor.calls.map(({ model }) => model)).toEqual(['replaced'])
    const unread = { method: 'POST', headers: { ...ASYNC, 'content-type': 'text/csv' }, body: 'x' }
    expect((await fetch(url, unread)).status).toBe(415)
  })

  it('an async request without a matching job queue, or too large for one, is answered at once', async () => {
    const gateway = await start({ maxRequestBytes: 200 })
    const other = await gateway.chat({ model: 'other' }, { headers: ASYNC })
    const large = await gateway.chat({ user: 'x'.repeat(200) }, { headers: ASYNC })
    for (const { status, headers } of [other, large]) {
      expect([status, headers.get('preference-applied')]).toEqual([200, null])
    }
  })

  it("an async request with the client's own vendor key is answered at once", async () => {
    const gateway = await start()
    for (const key of [as('of-the-vendor'), { 'x-goog-api-key': 'of-the-vendor' }]) {
      const answer = await gateway.chat({}, { headers: { ...ASYNC, ...key } })
      expect([answer.status, answer.headers.get('preference-applied')]).toEqual([200, null])
    }
    expect(gateway.gateway.spillway.jobQueue('night').snapshot().added).toBe(0)
  })

  it('a stored job contains no key', async () => {
    const guard = { key: 'env:VENDOR', headers: { 'x-api-token': 'env:VENDOR' } }
    const gateway = await start({ concurrency: 0 }, { callers: CALLERS, guard })
    const secrets = { cookie: 'session', 'x-harmless': 'yes' }
    const { address } = await submit(gateway, { ...as('key-of-ann'), ...secrets })
    const stored = JSON.stringify(await jobOf(gateway, address))
    for (const secret of ['key-of-ann', 'key-of-vendor', 'session', 'respond-async']) {
      expect(stored).not.toContain(secret)
    }
    expect(stored).toContain('x-harmless')
  })

  it('a job is visible only to its caller', async () => {
    const gateway = await start({}, { callers: CALLERS })
    const { address } = await submit(gateway, as('key-of-ann'))
    await untilStatus(gateway.url, address, 'done', as('key-of-ann'))
    const ask = async (path: string, headers: Record<string, string>, method = 'GET') =>
      (await fetch(`${gateway.url}${path}`, { method, headers })).status
    for (const path of [address, `${address}/result`]) {
      expect(await ask(path, as('key-of-ann'))).toBe(200)
      expect(await ask(path, as('key-of-bob'))).toBe(404)
      expect(await ask(path, as('unknown-key'))).toBe(401)
      expect(await ask(path, {})).toBe(401)
    }
    expect(await ask(address, as('key-of-bob'), 'DELETE')).toBe(404)
    expect(await ask('/spillway/jobs/night/1', as('key-of-ann'))).toBe(404)
    expect(await ask('/spillway/jobs/day/1', as('key-of-ann'))).toBe(404)
    expect(await ask('/spillway/jobs/day/1', {})).toBe(401)
    expect(await ask(address, as('key-of-ann'), 'PUT')).toBe(405)
  })

  it("a job has the priority of its caller's tier and takes turns with other callers", async () => {
    const priorities = { free: 'low', pro: 'high' }
    const callers = { callers: CALLERS }
    const gateway = await start({ priorities, concurrency: 0 }, callers)
    const ann = await submit(gateway, as('key-of-ann'))
    const bob = await submit(gateway, as('key-of-bob'))
    expect([ann.document.priority, bob.document.priority]).toEqual(['high', 'low'])
    expect((await jobOf(gateway, ann.address))?.tenant).toBe('ann')
  })

  it("an async request is charged to its user's limits", async () => {
    const userLimits = [{ per: 'user', limit: 2, windowMs: '1m' }]
    const gateway = await start({ concurrency: 0 }, { guard: { userLimits } })
    expect((await submit(gateway)).response.status).toBe(202)
    expect((await gateway.chat()).status).toBe(200)
    const { response } = await submit(gateway)
    expect(response.status).toBe(429)
    expect(response.headers.get('spillway-decision')).toContain('reason=USER_LIMITED')
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  it('an idempotency key is accepted once, and refused for a different request', async () => {
    const gateway = await start({ concurrency: 0 })
    const key = { 'idempotency-key': 'k-1' }
    const first = await submit(gateway, key)
    const again = await submit(gateway, key)
    const other = await submit(gateway, key, { messages: [{ role: 'user', content: 'another' }] })
    const someone = await submit(gateway, { ...key, 'spillway-user': 'another-user' })
    expect(again.address).toBe(first.address)
    expect(again.response.headers.get('spillway-decision')).toContain('known=?1')
    expect(other.response.status).toBe(422)
    expect(someone.address).not.toBe(first.address)
  })

  it('a full job queue is answered with 503 and Retry-After', async () => {
    const gateway = await start({ concurrency: 0, maxSize: 1 })
    await submit(gateway)
    const { response, document } = await submit(gateway)
    expect(response.status).toBe(503)
    expect(Number(response.headers.get('retry-after-ms'))).toBeGreaterThanOrEqual(8_000)
    expect(Number(response.headers.get('retry-after-ms'))).toBeLessThanOrEqual(12_000)
    expect(response.headers.get('spillway-decision')).toContain('reason=QUEUE_FULL')
    expect(JSON.stringify(document)).toContain('queue night is full: 1 of 1 jobs')
  })

  it('one caller cannot fill a job queue, and other callers still add jobs', async () => {
    const gateway = await start({ concurrency: 0, maxSize: 20 }, { callers: CALLERS })
    const add = async (key: string) => (await submit(gateway, as(key))).response.status
    const greedy: number[] = []
    // The default of maxPerTenant is a tenth of maxSize.
    for (let i = 0; i < 4; i++) greedy.push(await add('key-of-ann'))
    expect(greedy).toEqual([202, 202, 503, 503])
    expect(await add('key-of-bob')).toBe(202)
  })

  it('an async request with an invalid deadline is answered with 400', async () => {
    const gateway = await start({ concurrency: 0 })
    for (const [header, expected] of [
      ['soon', 'must be a number of milliseconds'],
      ['-5', 'must be at least 1'],
    ] as const) {
      const { response, document } = await submit(gateway, { 'spillway-deadline-ms': header })
      expect(response.status).toBe(400)
      expect(JSON.stringify(document)).toContain(`spillway-deadline-ms: ${expected}`)
    }
  })

  it('a job past its deadline is not run', async () => {
    const gateway = await start({ concurrency: 0 })
    const { address } = await submit(gateway, { 'spillway-deadline-ms': '1' })
    // A worker has to take the job to notice the deadline. On a fast machine that takes less than a millisecond.
    await pauseMs(5)
    const worker = gateway.gateway.spillway.jobQueue('night').work(() => 'never')
    await untilStatus(gateway.url, address, 'failed')
    await worker.close()
    const result = await fetch(`${gateway.url}${address}/result`)
    expect(result.status).toBe(504)
    expect(await result.text()).toContain('deadline')
    expect(gateway.vendor.counts.arrived).toBe(0)
  })
})

describe('vendor answers to jobs', () => {
  it('a retryable failure is retried and becomes a dead letter with its reason', async () => {
    const gateway = await start({ attempts: 3 })
    const { address } = await submit(gateway, { 'x-mock': '{"status":503}' })
    const failed = await untilStatus(gateway.url, address, 'failed')
    expect(failed).toMatchObject({ attempt: 3, attempts: 3 })
    expect(failed.error).toContain('openai answered with status 503')
    expect(gateway.vendor.counts.arrived).toBe(3)
    const result = await fetch(`${gateway.url}${address}/result`)
    expect(result.status).toBe(502)
    expect(await gateway.gateway.spillway.jobQueue('night').counts()).toMatchObject({ dead: 1 })
  })

  it('a final error status is stored as the answer of the job', async () => {
    const gateway = await start()
    const { address } = await submit(gateway, { 'x-mock': '{"status":400}' })
    expect(await untilStatus(gateway.url, address, 'done')).toMatchObject({
      answer: { status: 400 },
    })
    expect((await fetch(`${gateway.url}${address}/result`)).status).toBe(400)
  })

  it('an answer above maxAnswerBytes fails the job', async () => {
    const gateway = await start({ maxAnswerBytes: 50 })
    const { address } = await submit(gateway)
    const { error } = await untilStatus(gateway.url, address, 'failed')
    expect(error).toContain('larger than 50 bytes')
    expect(gateway.vendor.counts.arrived).toBe(1)
  })

  it('the answer of a streamed request is stored as a stream', async () => {
    const gateway = await start()
    const { address } = await submit(gateway, {}, { stream: true })
    await untilStatus(gateway.url, address, 'done')
    const result = await fetch(`${gateway.url}${address}/result`)
    expect(result.headers.get('content-type')).toContain('text/event-stream')
    expect(await result.text()).toMatch(/data: \[DONE\]\n\n$/)
  })

  it('a job settles its estimated tokens', async () => {
    const limits = [{ unit: 'tokens', limit: 100_000, windowMs: '1m' }]
    const gateway = await start({}, { guard: { limits } }, { tokens: 7 })
    const { address } = await submit(gateway, {}, { max_tokens: 50_000 })
    await untilStatus(gateway.url, address, 'done')
    const used = async () => {
      const { guards } = await gateway.gateway.spillway.fleet()
      const all = guards.flatMap((guard) => guard.limits)
      return all.find(({ lane }) => lane === 'gpt')?.used ?? 0
    }
    // Pods report their lanes once a second.
    await expect.poll(used).toSatisfy((units) => units > 0 && units < 1_000)
  })

  it('with the quota of OpenAI a job counts its max_tokens', async () => {
    const limits = [{ unit: 'tokens', limit: 100_000, windowMs: '1m' }]
    const gateway = await start({}, { guard: { limits, quota: 'openai' } }, { tokens: 7 })
    const { address } = await submit(gateway, {}, { max_tokens: 30_000 })
    await untilStatus(gateway.url, address, 'done')
    const used = async () => {
      const { guards } = await gateway.gateway.spillway.fleet()
      const all = guards.flatMap((guard) => guard.limits)
      return all.find(({ lane }) => lane === 'gpt')?.used ?? 0
    }
    await expect.poll(used).toBe(30_000)
  })

  it('a job that is not idempotent is attempted only once', async () => {
    const { vendorUrl, ...gateway } = await startGateway({}, { knobs: { tokens: 1 } })
    const front = await startGateway({
      vendors: {
        plain: {
          protocol: 'http',
          url: vendorUrl,
          breaker: { consecutiveFailures: 1, openMs: '50ms' },
        },
      },
      routes: [{ path: '/v1/*', vendor: 'plain' }],
      jobQueues: { once: { vendor: 'plain', baseMs: 1, maxMs: 2 } },
    })
    const { address } = await submit(front, { 'x-mock': '{"status":500}' })
    const { attempt, attempts } = await untilStatus(front.url, address, 'failed')
    expect([attempt, attempts, gateway.vendor.counts.arrived]).toEqual([1, 1, 1])
  })
})

describe('clients waiting for a job', () => {
  it('a client that follows a job receives every change, and the stream ends with the job', async () => {
    // The worker reports progress three times per lease, which a busy machine must not let expire.
    const gateway = await start({ leaseMs: 1_500 }, {}, { tokens: 60, tokenMs: 20 })
    const { address } = await submit(gateway, {}, { stream: true })
    const headers = { accept: 'text/event-stream' }
    const events = await readEvents(await fetch(`${gateway.url}${address}`, { headers }))
    expect(events.at(-1)).toMatchObject({ event: 'done', data: { status: 'done' } })
    expect(events.map(({ event }) => event)).toContain('running')
    const progress = events.map(({ data }) => data.progress?.receivedBytes ?? 0)
    expect(Math.max(...progress)).toBeGreaterThan(0)
    // A finished job is reported at once.
    const after = await readEvents(await fetch(`${gateway.url}${address}`, { headers }))
    expect(after).toHaveLength(1)
  })

  it('a caller may follow a hundred jobs at once, independent of other callers', async () => {
    const gateway = await start({ concurrency: 1 }, { callers: CALLERS }, { latencyMs: 60_000 })
    const ann = await submit(gateway, as('key-of-ann'))
    const bob = await submit(gateway, as('key-of-bob'))
    const follow = (address: string, key: string, signal?: AbortSignal) =>
      fetch(`${gateway.url}${address}`, {
        headers: { accept: 'text/event-stream', ...as(key) },
        ...(signal && { signal }),
      })
    const leave = new AbortController()
    const first = await follow(ann.address, 'key-of-ann', leave.signal)
    const others = Array.from({ length: MOST_STREAMS - 1 }, () => follow(ann.address, 'key-of-ann'))
    // An answer that is no longer referenced is cancelled when it is collected.
    const open = await Promise.all(others)
    for (const { status } of open) expect(status).toBe(200)
    const refused = await follow(ann.address, 'key-of-ann')
    expect(refused.status).toBe(429)
    expect(await refused.text()).toContain('TOO_MANY_STREAMS')
    expect((await readJob(gateway.url, ann.address, as('key-of-ann'))).status).toBe(200)
    expect((await follow(bob.address, 'key-of-bob')).status).toBe(200)
    leave.abort()
    await first.text().catch(() => {})
    const again = async () => (await follow(ann.address, 'key-of-ann')).status
    await expect.poll(again).toBe(200)
    expect(open.filter(({ bodyUsed }) => bodyUsed)).toEqual([])
  })

  it('a caller may cancel a waiting or running job, but not a finished one', async () => {
    const gateway = await start({ leaseMs: 300, concurrency: 1 }, {}, { latencyMs: 60_000 })
    const running = await submit(gateway)
    await untilStatus(gateway.url, running.address, 'running')
    const waiting = await submit(gateway)
    const cancel = (address: string) => fetch(`${gateway.url}${address}`, { method: 'DELETE' })
    expect((await cancel(waiting.address)).status).toBe(200)
    expect((await readJob(gateway.url, waiting.address)).document.status).toBe('cancelled')
    expect((await fetch(`${gateway.url}${waiting.address}/result`)).status).toBe(410)
    expect((await cancel(running.address)).status).toBe(202)
    await untilStatus(gateway.url, running.address, 'cancelled')
    await until('the vendor is let go', () => gateway.vendor.atOnce === 0)
    gateway.vendor.set({ latencyMs: 0 })
    const third = await submit(gateway)
    await untilStatus(gateway.url, third.address, 'done')
    expect((await cancel(third.address)).status).toBe(409)
  })
})

describe('gateway with job queues', () => {
  it('a draining gateway lets running jobs finish and starts no more', async () => {
    const gateway = await start({ concurrency: 1 }, {}, { latencyMs: 300 })
    const jobs = gateway.gateway.spillway.jobQueue('night')
    const first = await submit(gateway)
    await submit(gateway)
    await until('one runs', () => gateway.vendor.atOnce === 1)
    const { done } = jobs.snapshot()
    await gateway.gateway.close({ graceMs: 10_000 })
    expect(jobs.snapshot().done - done).toBe(1)
    expect(gateway.vendor.counts.arrived).toBe(1)
    expect(first.document.status).not.toBe('done')
  })

  it('metrics report depth by priority, age, dead letters and outcomes of jobs', async () => {
    const gateway = await start({ attempts: 2 })
    const { address } = await submit(gateway, { 'x-mock': '{"status":503}' })
    await untilStatus(gateway.url, address, 'failed')
    const done = await submit(gateway)
    await untilStatus(gateway.url, done.address, 'done')
    await gateway.gateway.spillway.jobQueue('night').pause()
    await submit(gateway, { 'spillway-priority': 'low' })
    const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
    const of = 'vendor="openai",queue="night"'
    for (const line of [
      `spillway_jobs_added_total{${of}} 3`,
      `spillway_jobs_total{${of},outcome="done"} 1`,
      `spillway_jobs_total{${of},outcome="retried"} 1`,
      `spillway_jobs_total{${of},outcome="dead"} 1`,
      `spillway_jobs_waiting{${of},priority="low"} 1`,
      `spillway_jobs_waiting{${of},priority="high"} 0`,
      `spillway_jobs_by_state{${of},state="dead"} 1`,
      `spillway_jobs_paused{${of}} 1`,
    ]) {
      expect(metrics).toContain(line)
    }
    expect(metrics).toMatch(/spillway_jobs_oldest_seconds\{.*\} 0\.\d+/)
    const snapshot = await (await fetch(`${gateway.adminUrl}/snapshot`)).json()
    expect(snapshot).toMatchObject({
      jobQueues: [{ name: 'night', lane: 'gpt', done: 1, dead: 1 }],
    })
  })
})

/** The job as it is stored. */
async function jobOf({ gateway }: Awaited<ReturnType<typeof start>>, address: string | null) {
  return gateway.spillway.jobQueue('night').job(address?.split('/').at(-1) ?? '')
}
