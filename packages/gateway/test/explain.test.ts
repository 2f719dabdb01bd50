// test-group: io, slow

/** Explanations of requests: on the dashboard, over the admin port and with `spillway explain`. */
import { connect } from 'node:net'
import type { Decision, Explanation } from '@spillway/dashboard'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type Reader, readFeed } from '../../dashboard/test/server/dashboard-kit.js'
import { type RedisServer, startRedis } from '../../spillway/test/redis-server.js'
import { openShell, runHere } from './command-kit.js'
import { startGateway } from './gateway-kit.js'

const KEY = 'planted-caller-key'
const CALLERS = [{ key: 'env:ADA_KEY', user: 'ada', tier: 'pro' }]

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

/** Waits for the decision with this request id in the feed. */
async function decisionOf(reader: Reader, response: Response): Promise<Decision> {
  await response.arrayBuffer()
  const id = idOf(response)
  const found = await reader.until('decisions', ({ records }) =>
    records.some(({ requestId }) => requestId === id),
  )
  return found.records.find(({ requestId }) => requestId === id) as Decision
}

function idOf({ headers }: Response): string {
  return headers.get('spillway-request-id') ?? ''
}

function sendRaw(url: string, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(text))
    socket.on('data', (chunk) => {
      answer += chunk
    })
    socket.on('close', () => resolve(answer))
    socket.on('error', reject)
  })
}

describe('decisions on requests', () => {
  it("a vendor's 503 is FAILED and its 404 is REJECTED, with their status", async () => {
    const { adminUrl, chat, vendor } = await startGateway()
    const reader = await readFeed(`${adminUrl}/dashboard/events`)
    await reader.until('hello')
    vendor.set({ status: 503 })
    expect(await decisionOf(reader, await chat())).toMatchObject({ code: 'FAILED', status: 503 })
    vendor.set({ status: 404 })
    expect(await decisionOf(reader, await chat())).toMatchObject({ code: 'REJECTED', status: 404 })
    vendor.reset()
    expect(await decisionOf(reader, await chat())).toMatchObject({ code: 'OK', status: 200 })
  })

  it('refusals of the gateway itself are listed, without key, path or body', async () => {
    const body = { maxBytes: 2_000, keepBytes: 1_000 }
    const written = { callers: CALLERS, body, routes: [{ path: '/v1/*', vendor: 'openai' }] }
    const { adminUrl, url, chat } = await startGateway(written, {}, { ADA_KEY: KEY })
    const reader = await readFeed(`${adminUrl}/dashboard/events`)
    await reader.until('hello')
    const headers = { authorization: `Bearer ${KEY}` }
    const wrong = await chat({}, { headers: { authorization: 'Bearer planted-wrong-key' } })
    expect(await decisionOf(reader, wrong)).toMatchObject({
      guard: '',
      code: 'UNKNOWN_KEY',
      status: 401,
      stage: 'request',
    })
    const missing = await fetch(`${url}/planted/path`, { headers })
    expect(await decisionOf(reader, missing)).toMatchObject({ code: 'NOT_FOUND', status: 404 })
    const large = await chat({ messages: 'planted '.repeat(1_000) }, { headers })
    expect(await decisionOf(reader, large)).toMatchObject({ code: 'BODY_TOO_LARGE', status: 413 })
    const invalid = await chat({ model: 7 }, { headers })
    expect(await decisionOf(reader, invalid)).toMatchObject({
      code: 'INVALID_BODY',
      status: 400,
      user: 'ada',
    })
    expect(await sendRaw(url, 'planted nonsense\r\n\r\n')).toContain(' 400 ')
    await reader.until('decisions', ({ records }) =>
      records.some(({ code }) => code === 'MALFORMED_REQUEST'),
    )
    expect(reader.text).not.toMatch(/planted/i)
  })

  it('a fallback names the call it replaced and its user', async () => {
    const { adminUrl, chat, vendor } = await startGateway(
      {
        callers: CALLERS,
        guard: { userLimits: [{ per: 'user', limit: 100, windowMs: '1h' }] },
        vendors: { backup: { protocol: 'openai', url: 'mock', key: 'env:VENDOR_KEY' } },
        routes: [
          {
            path: '/v1/*',
            vendor: 'openai',
            fallbacks: [{ vendor: 'backup' }],
          },
        ],
      },
      {},
      { ADA_KEY: KEY, VENDOR_KEY: 'planted-vendor-key' },
    )
    const reader = await readFeed(`${adminUrl}/dashboard/events`)
    await reader.until('hello')
    vendor.set({ status: 503 })
    const headers = { authorization: `Bearer ${KEY}`, 'idempotency-key': 'one' }
    const answer = await chat({}, { headers })
    await answer.arrayBuffer()
    expect(answer.status).toBe(200)
    const id = idOf(answer)
    const { decisions } = (await (
      await fetch(`${adminUrl}/explain?request=${id}`)
    ).json()) as Explanation
    expect(decisions).toMatchObject([
      { guard: 'openai', code: 'FAILED', status: 503, user: 'ada' },
      {
        guard: 'backup',
        code: 'OK',
        user: 'ada',
        tier: 'pro',
        replaces: { guard: 'openai', code: 'FAILED', status: 503 },
      },
    ])
  })

  it('explain finds a request that another gateway refused, and names the cause', async () => {
    const written = {
      redis: { url: redis.url, prefix: 'explain:' },
      guard: { breaker: { consecutiveFailures: 3, openMs: '1m' } },
    }
    const [one, other] = [await startGateway(written), await startGateway(written)]
    const { spillway } = one.gateway
    await vi.waitUntil(async () => (await spillway.pods()).length === 2, 10_000)
    other.vendor.set({ status: 500 })
    let refused = await other.chat()
    // The store opens the circuit a moment after the third failure.
    while (refused.status === 500) refused = await other.chat()
    expect(refused.status).toBe(503)
    const id = idOf(refused)
    const ofOther = await runHere('explain', id, '--admin', one.adminUrl)
    expect(ofOther.stderr).toBe('')
    expect(ofOther.code).toBe(0)
    expect(ofOther.stdout).toContain(`request ${id}: 503 CIRCUIT_OPEN`)
    expect(ofOther.stdout).toMatch(/the circuit is open \(\d+ failures in a row\)/)
    expect(ofOther.stdout).toContain(other.gateway.spillway.pod)
    // Through the store, without a gateway.
    const shell = openShell({
      redis: { url: redis.url, prefix: 'explain:' },
      vendors: { openai: { protocol: 'openai', url: 'http://127.0.0.1:9', key: 'env:NO_KEY' } },
    })
    const byStore = await shell.runHere('explain', id, '--json')
    expect(byStore.stderr).toBe('')
    expect(JSON.parse(byStore.stdout)).toMatchObject({
      requestId: id,
      request: { status: 503, code: 'CIRCUIT_OPEN' },
      decisions: [
        { code: 'CIRCUIT_OPEN', numbers: { cause: expect.stringMatching(/failures in a row/) } },
      ],
    })
    const unknown = await runHere('explain', 'no-such-request', '--admin', one.adminUrl)
    expect(unknown.code).toBe(1)
    expect(unknown.stdout).toContain('No pod has data about the request no-such-request.')
  })

  it('the page of one gateway lists decisions of another, in either direction', async () => {
    const written = { redis: { url: redis.url, prefix: 'fleet:' } }
    const [one, other] = [await startGateway(written), await startGateway(written)]
    const reader = await readFeed(`${one.adminUrl}/dashboard/events`)
    await reader.until('fleet', ({ pods }) => pods.length === 2)
    other.vendor.set({ status: 503 })
    expect(await decisionOf(reader, await other.chat())).toMatchObject({
      code: 'FAILED',
      status: 503,
      pod: other.gateway.spillway.pod,
    })
  })

  it('explain rejects an invalid id, and needs read access over the admin port', async () => {
    const token = 'planted-admin-token-0123'
    const admin = { port: 0, token: 'env:ADMIN_TOKEN' }
    const { adminUrl } = await startGateway({ admin }, {}, { ADMIN_TOKEN: token })
    expect((await fetch(`${adminUrl}/explain?request=a`)).status).toBe(401)
    expect((await fetch(`${adminUrl}/dashboard/explain?request=a`)).status).toBe(401)
    const headers = { authorization: `Bearer ${token}` }
    for (const path of ['/explain', '/dashboard/explain?request=a%20b']) {
      expect((await fetch(adminUrl + path, { headers })).status).toBe(400)
    }
    expect((await runHere('explain', 'two words')).code).toBe(2)
    expect((await runHere('explain')).code).toBe(2)
    expect((await runHere('explain', 'one', 'two')).code).toBe(2)
  })
})
