// test-group: io

import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { HttpException } from '@nestjs/common'
import { fastify } from 'fastify'
import { HTTPException } from 'hono/http-exception'
import OpenAI from 'openai'
import { afterEach, describe, expect, it } from 'vitest'
import { noteRetried } from '../../src/core/hops.js'
import { currentDeadline } from '../../src/core/time/deadline.js'
import { spillwayFastify } from '../../src/http/fastify.js'
import { createSpillway, SpillwayError } from '../../src/index.js'
import { redisStore } from '../../src/store/redis/redis-store.js'
import { createVirtualClock } from '../../src/testing/index.js'
import { startRedis } from '../redis-server.js'
import { FRAMEWORKS, type Handler, type Options, type Running } from './server-kit.js'

const identify: NonNullable<Options['identify']> = ({ headers }) => ({
  user: headers['x-user'] as string | undefined,
  tier: headers['x-tier'] as string | undefined,
  ...(headers['x-urgent'] !== undefined && { priority: 'critical' as const }),
})

const codeOf = async (response: Response) =>
  ((await response.json()) as { error: { code: string } }).error.code

const healthy = async () => ({ status: 'healthy' as const })

describe.each(Object.keys(FRAMEWORKS))('HTTP server on %s', (framework) => {
  const running: Running[] = []
  afterEach(async () => {
    for (const each of running.splice(0)) await each.close()
  })

  async function start(options: Options, handler: Handler = () => ({ ok: true })) {
    const server = await FRAMEWORKS[framework]!(options, handler)
    running.push(server)
    const ask = (path = '/', headers: Record<string, string> = {}, init: RequestInit = {}) =>
      fetch(`${server.url}${path}`, { headers, ...init })
    return { ...server, ask }
  }

  it('server serves requests within its limits and sends RateLimit headers', async () => {
    const { ask } = await start({
      limits: [
        { per: 'global', limit: 1_000, windowMs: '1h' },
        { per: 'user', limit: 5, windowMs: '50s' },
      ],
      identify,
    })
    const response = await ask('/', { 'x-user': 'ann' })
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({ ok: true })
    expect(response.headers.get('ratelimit-policy')).toBe('"global";q=1000;w=3600, "user";q=5;w=50')
    // A bucket of 5 in 50 s refills one every 10 s.
    expect(response.headers.get('ratelimit')).toBe('"user";r=4;t=10')
  })

  it('server answers 429 beyond its limits with Retry-After and the reason', async () => {
    const { ask, snapshot } = await start({
      limits: [{ per: 'user', limit: 1, windowMs: '20s' }],
      identify,
    })
    await ask('/', { 'x-user': 'ann' })
    const refused = await ask('/', { 'x-user': 'ann' })
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toBe('20')
    expect(refused.headers.get('ratelimit')).toBe('"user";r=0;t=20')
    expect(await refused.json()).toMatchObject({
      error: { type: 'spillway', code: 'USER_LIMITED', stage: 'user-limit' },
    })
    expect((await ask('/', { 'x-user': 'bob' })).status).toBe(200)
    expect(snapshot()).toEqual({
      name: 'server',
      admitted: 2,
      unchecked: 0,
      refused: [{ code: 'USER_LIMITED', count: 1 }],
    })
  })

  it('server identifies a client by its connection and ignores X-Forwarded-For by default', async () => {
    const { ask } = await start({ limits: [{ per: 'ip', limit: 1, windowMs: '1h' }] })
    await ask('/', { 'x-forwarded-for': '203.0.113.1' })
    expect((await ask('/', { 'x-forwarded-for': '203.0.113.2' })).status).toBe(429)
  })

  it('server trusts only the addresses that its own proxies have added', async () => {
    const { ask } = await start({
      limits: [{ per: 'ip', limit: 1, windowMs: '1h' }],
      trustedProxies: ['loopback'],
    })
    await ask('/', { 'x-forwarded-for': '198.51.100.7, 203.0.113.1' })
    const other = await ask('/', { 'x-forwarded-for': '198.51.100.7, 203.0.113.2' })
    expect(other.status).toBe(200)
    const forged = await ask('/', { 'x-forwarded-for': '1.2.3.4, 203.0.113.1' })
    expect(forged.status).toBe(429)
  })

  it('handler receives user, tier, priority and address of the request', async () => {
    const seen: unknown[] = []
    const handler: Handler = ({ call }) => {
      seen.push([call.user, call.tier, call.priority, call.ip])
      return {}
    }
    const { ask } = await start({ identify }, handler)
    await ask('/', { 'x-user': 'ann', 'x-tier': 'pro', 'x-urgent': '1' })
    expect(seen).toEqual([['ann', 'pro', 'critical', '127.0.0.1']])
  })

  it('server counts endpoints separately', async () => {
    const { ask } = await start({
      limits: [{ per: 'endpoint', limit: 1, windowMs: '1h' }],
      identify: () => undefined,
    })
    const endpointOf = framework === 'fastify' ? 1 : 2
    await ask('/a?x=1')
    // Fastify knows the route that both paths belong to.
    const statuses = [(await ask('/b')).status, (await ask('/a?x=2')).status]
    expect(statuses).toEqual(endpointOf === 1 ? [429, 429] : [200, 429])
  })

  it('server counts every spelling of a path that reaches the same handler as one endpoint', async () => {
    const { url } = await start({
      limits: [{ per: 'endpoint', limit: { '/chat': 1, '/*': 1 }, windowMs: '1h' }],
    })
    const { host, hostname, port } = new URL(url)
    const spellings = ['/chat?a', `http://${host}/chat`, '/ch%61t', '/chat#x']
    if (framework === 'express' || framework === 'nest')
      spellings.push('/CHAT', '/chat/', '/Ch%61t/')
    const statuses: number[] = []
    for (const path of spellings) {
      const clientRequest = request({ hostname, port, path, agent: false }).end()
      const [answer] = (await once(clientRequest, 'response')) as [IncomingMessage]
      statuses.push(answer.resume().statusCode ?? 0)
    }
    expect(statuses).toEqual([200, ...spellings.slice(1).map(() => 429)])
  })

  it('server sheds before any other work and tells the shedder when a request has ended', async () => {
    let inside = 0
    const shed = {
      enter({ priority }: { priority?: string | undefined }) {
        if (inside >= 1 && priority !== 'critical') return undefined
        inside++
        return { end: () => void inside-- }
      },
    }
    let release = () => {}
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const limits = [{ per: 'global' as const, limit: 100, windowMs: '1h' as const }]
    const { ask } = await start({ shed, limits, identify }, async () => {
      await gate
      return {}
    })
    const first = ask('/')
    while (inside === 0) await sleep(1)
    const refused = await ask('/')
    expect(refused.status).toBe(503)
    expect(await codeOf(refused)).toBe('SHED')
    // A shed request is not charged.
    expect(refused.headers.get('ratelimit')).toBeNull()
    const urgent = ask('/', { 'x-urgent': '1' })
    while (inside === 1) await sleep(1)
    release()
    expect([(await first).status, (await urgent).status]).toEqual([200, 200])
    while (inside > 0) await sleep(1)
  })

  it('a request ends when its client disconnects', async () => {
    let inside = 0
    const shed = {
      enter() {
        inside++
        return { end: () => void inside-- }
      },
    }
    const { ask } = await start({ shed }, () => new Promise(() => {}))
    const leaving = new AbortController()
    const asked = ask('/', {}, { signal: leaving.signal }).catch(() => {})
    while (inside === 0) await sleep(1)
    leaving.abort()
    await asked
    await expect.poll(() => inside).toBe(0)
  })

  it('pipelined requests end when their connection breaks', async () => {
    let inside = 0
    const shed = {
      enter() {
        inside++
        return { end: () => void inside-- }
      },
    }
    const { url } = await start({ shed }, () => new Promise(() => {}))
    const { port } = new URL(url)
    const socket = connect(Number(port), '127.0.0.1')
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(3))
    await expect.poll(() => inside).toBe(3)
    socket.destroy()
    await expect.poll(() => inside).toBe(0)
  })

  it('an identify() that throws is answered with 500', async () => {
    const { ask } = await start({
      identify: () => {
        throw new Error('no such token')
      },
    })
    expect((await ask('/')).status).toBe(500)
  })

  it.each(['GET', 'POST'])('a %s handler gets the remaining time of its caller', async (method) => {
    const { ask } = await start({}, async ({ body }) => {
      await sleep(1)
      return { leftMs: currentDeadline()?.remainingMs(), body }
    })
    const body = method === 'POST' ? 'x'.repeat(100_000) : undefined
    const init = { method, ...(body && { body }) }
    const answer = await ask('/', { 'spillway-deadline-ms': '100000' }, init)
    const { leftMs, body: got } = (await answer.json()) as { leftMs: number; body: string }
    expect(leftMs).toBeGreaterThan(1_000)
    expect(leftMs).toBeLessThan(100_000)
    expect(got).toBe(body ?? '')
    expect(await (await ask('/', {}, init)).json()).not.toHaveProperty('leftMs')
  })

  it("the earlier of the caller's deadline and deadline.timeoutMs applies", async () => {
    const handler = () => ({ leftMs: currentDeadline()?.remainingMs() })
    const { ask } = await start({ deadline: { timeoutMs: '2s' } }, handler)
    const answer = await ask('/', { 'spillway-deadline-ms': '50000' })
    const { leftMs } = (await answer.json()) as { leftMs: number }
    expect(leftMs).toBeLessThanOrEqual(2_000)
  })

  it('a request with an expired deadline is answered with 504 without calling the handler', async () => {
    let handled = 0
    const { ask } = await start({}, () => ({ handled: ++handled }))
    const late = await ask('/', { 'spillway-deadline-ms': '0' })
    expect([late.status, handled]).toEqual([504, 0])
  })

  it('server sends the retried header to callers that know it', async () => {
    const { ask } = await start({}, () => {
      noteRetried()
      return {}
    })
    const told = await ask('/', { 'spillway-attempt': '1' })
    expect(told.headers.get('spillway-retried')).toBe('1')
    expect((await ask('/')).headers.get('spillway-retried')).toBeNull()
  })

  it('health endpoints answer before limits and shedding', async () => {
    const health = {
      live: healthy,
      ready: async () => ({ status: 'unhealthy' as const, checks: [] }),
      deep: async () => ({ status: 'degraded' as const }),
    }
    const { ask } = await start({
      limits: [{ per: 'global', limit: 1, windowMs: '1h' }],
      shed: { enter: () => undefined },
      health,
    })
    for (let i = 0; i < 3; i++) expect((await ask('/health/live')).status).toBe(200)
    const ready = await ask('/health/ready?verbose')
    expect([ready.status, await ready.json()]).toEqual([503, { status: 'unhealthy', checks: [] }])
    expect((await ask('/health/deep')).status).toBe(200)
    expect((await ask('/health/deeper')).status).toBe(503)
    expect((await ask('/healthy')).status).toBe(503)
  })

  it('a guard refusal in the handler becomes an HTTP answer with Retry-After', async () => {
    const spillway = createSpillway()
    const guard = spillway.guard('vendor', {
      limits: [{ unit: 'requests', limit: 1, windowMs: '60s' }],
    })
    const { ask } = await start({ identify }, ({ call }) => guard.run(() => ({ ok: 1 }), call))
    expect((await ask('/', { 'x-user': 'ann' })).status).toBe(200)
    const refused = await ask('/', { 'x-user': 'ann' })
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    await spillway.close()
  })

  it('a refusal says in headers whether and when a retry makes sense, for every code', async () => {
    const waits = {
      SHED: 1_200,
      QUEUE_FULL: 1,
      QUEUE_TIMEOUT: 2_000,
      CIRCUIT_OPEN: 90_000,
      DEADLINE_EXCEEDED: undefined,
      CALL_TIMEOUT: undefined,
    }
    const { ask } = await start({}, ({ path }) => {
      const code = path.slice(1) as keyof typeof waits
      const retryAfterMs = waits[code]
      throw new SpillwayError({
        ...{ code, stage: 'call', scope: 'local', explain: () => code },
        ...(retryAfterMs !== undefined && { retryAfterMs }),
      })
    })
    const seen: Record<string, unknown> = {}
    for (const code of Object.keys(waits)) {
      const { headers } = await ask(`/${code}`)
      seen[code] = [headers.get('retry-after'), headers.get('x-should-retry')]
    }
    expect(seen).toEqual({
      SHED: ['2', null],
      QUEUE_FULL: ['1', null],
      QUEUE_TIMEOUT: ['2', null],
      CIRCUIT_OPEN: ['90', 'false'],
      DEADLINE_EXCEEDED: [null, 'false'],
      CALL_TIMEOUT: [null, null],
    })
  })

  it('a refusal that an SDK wrapped gets the same answer as a plain refusal', async () => {
    // The clock stands still, so that all refusals have the same message and Retry-After.
    const spillway = createSpillway({ clock: createVirtualClock() })
    const guard = spillway.guard('vendor', { breaker: {}, timeout: { callMs: '10s' } })
    await guard.breaker?.isolate('60s')
    const own = { baseURL: 'http://127.0.0.1:1/v1', apiKey: 'key', logLevel: 'off' as const }
    const withFetch = new OpenAI({ ...own, maxRetries: 0, fetch: guard.fetch })
    const withSdk = new OpenAI({ ...own, ...guard.sdk(OpenAI) })
    const errors: unknown[] = []
    const { ask } = await start({}, async ({ path }) => {
      try {
        if (path === '/plain') return await guard.run(() => ({}))
        return await (path === '/answered' ? withSdk : withFetch).models.list()
      } catch (error) {
        errors.push(error)
        if (path !== '/twice') throw error
        throw new Error('outer', { cause: new AggregateError([new Error('first'), error]) })
      }
    })
    const answerTo = async (path: string) => {
      const answer = await ask(path)
      const headers = Object.fromEntries(answer.headers)
      return { status: answer.status, headers: { ...headers, date: '' }, body: await answer.json() }
    }
    const plain = await answerTo('/plain')
    expect(plain).toMatchObject({
      status: 503,
      headers: { 'retry-after': '60', 'retry-after-ms': '60000' },
      body: { error: { type: 'spillway', code: 'CIRCUIT_OPEN', stage: 'breaker' } },
    })
    for (const path of ['/cause', '/twice', '/answered'])
      expect(await answerTo(path)).toEqual(plain)
    const isFromSdk = errors.map((error) => error instanceof OpenAI.APIError)
    expect(isFromSdk).toEqual([false, true, true, true])
    await spillway.close()
  })

  it('an error around a refusal keeps the status that the handler gave it', async () => {
    const spillway = createSpillway()
    const guard = spillway.guard('vendor', { shed: { when: () => true } })
    const { ask } = await start({}, async () => {
      const cause = await guard.run(() => 1).catch((error: unknown) => error)
      if (framework === 'hono') throw new HTTPException(404, { cause })
      if (framework.startsWith('nest')) throw new HttpException('not here', 404, { cause })
      throw Object.assign(new Error('not here', { cause }), { status: 404 })
    })
    // With node:http the status of an error has no meaning.
    expect((await ask('/')).status).toBe(framework === 'node:http' ? 503 : 404)
    await spillway.close()
  })

  it('an error in the handler is answered with 500', async () => {
    const { ask } = await start({}, () => {
      throw new Error('a bug')
    })
    expect((await ask('/')).status).toBe(500)
  })

  it('servers share limits through Redis and keep working without it', async () => {
    const redis = await startRedis()
    const options = { limits: [{ per: 'ip' as const, limit: 1, windowMs: '1h' as const }] }
    const commandTimeoutMs = 500
    const stores = [0, 1].map(() => redisStore({ url: redis.url, commandTimeoutMs }))
    try {
      while (!stores.every((store) => store.ready)) await sleep(5)
      const open = options.limits.map((level) => ({ ...level, outage: 'allow' as const }))
      const one = await start({ limits: open, store: stores[0]! })
      const closed = options.limits.map((level) => ({ ...level, outage: 'refuse' as const }))
      const two = await start({ limits: closed, store: stores[1]! })
      expect((await one.ask('/')).status).toBe(200)
      expect((await two.ask('/')).status).toBe(429)
      // Redis accepts connections but does not answer: no request hangs and none gets a false 429.
      redis.pause()
      expect((await one.ask('/')).status).toBe(200)
      // Later requests do not wait for it again: Redis is asked in the background.
      const askedMs = performance.now()
      for (let each = 0; each < 20; each++) expect((await one.ask('/')).status).toBe(200)
      expect(performance.now() - askedMs).toBeLessThan(20 * commandTimeoutMs)
      await redis.kill()
      expect((await one.ask('/')).status).toBe(200)
      expect(one.snapshot().unchecked).toBe(22)
      const refused = await two.ask('/')
      expect([refused.status, await codeOf(refused)]).toEqual([503, 'STORE_UNAVAILABLE'])
    } finally {
      for (const store of stores) await store.close()
      await redis.kill()
    }
  })
})

it("Fastify: the application's own error handler receives the SDK's error around a refusal", async () => {
  const spillway = createSpillway()
  const guard = spillway.guard('vendor', { breaker: {}, timeout: { callMs: '10s' } })
  await guard.breaker?.isolate('60s')
  const client = new OpenAI({ apiKey: 'key', logLevel: 'off', ...guard.sdk(OpenAI) })
  const app = fastify()
  await app.register(spillwayFastify, {})
  const seen: unknown[] = []
  app.setErrorHandler((error, _, reply) => {
    seen.push(error)
    return reply.code(418).send({ mine: true })
  })
  app.get('/', () => client.models.list())
  const answer = await app.inject('/')
  expect([answer.statusCode, answer.json()]).toEqual([418, { mine: true }])
  expect(seen).toEqual([expect.any(OpenAI.APIError)])
  await app.close()
  await spillway.close()
})

describe('server options', () => {
  const start = FRAMEWORKS['node:http']!
  it.each([
    [{ limit: [] }, "server.limit: unknown option; did you mean 'limits'?"],
    [{ trustedProxies: true }, 'server.trustedProxies: must be a number of proxies'],
    [{ trustedProxies: ['10.0.0.0/33'] }, 'server.trustedProxies[0]: must be an address'],
    [{ shed: {} }, 'server.shed: must be a load shedder'],
    [{ healthLevels: ['alive'] }, "server.healthLevels[0]: must be one of 'live', 'ready', 'deep'"],
  ])('server options %j are rejected with their path', async (options, message) => {
    await expect(start(options as never, () => 1)).rejects.toThrow(message)
  })
})
