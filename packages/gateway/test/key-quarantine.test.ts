// test-group: io, slow

/** API keys that a vendor rejects: another key or a fallback takes over, in the whole fleet. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { readFeed } from '../../dashboard/test/server/dashboard-kit.js'
import { type RedisServer, startRedis } from '../../spillway/test/redis-server.js'
import { pauseMs } from '../../spillway/test/streams/stream-kit.js'
import { openShell } from './command-kit.js'
import { type RunningGateway, startGateway } from './gateway-kit.js'
import { startGatewayProcess } from './gateway-process.js'
import { type KeyVendor, startKeyVendor } from './key-vendor.js'

const FIRST = 'sk-first-0123456789'
const SECOND = 'sk-second-0123456789'
const ENV = { FIRST, SECOND }

/** Lanes of these models exist before their first answer. */
const OWN_LANES = ['gpt-4o', 'gpt-4o-mini'].map((match) => ({
  match,
  limits: [{ limit: 1_000, windowMs: '1m' }],
}))

const PATIENCE = { timeout: 30_000 }

const TWO_KEYS = { keys: { main: 'env:FIRST', spare: 'env:SECOND' } }

function vendorsOf({ url }: KeyVendor, own: object): Record<string, object> {
  return { openai: { protocol: 'openai', url, concurrency: { limit: 50 }, ...own } }
}

async function start(vendor: KeyVendor, own: object = TWO_KEYS, more: object = {}) {
  return startGateway({ vendors: vendorsOf(vendor, own), ...more }, {}, ENV)
}

async function metric({ adminUrl }: RunningGateway, key: string): Promise<string | undefined> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text()
  const line = new RegExp(`^spillway_key_quarantined\\{vendor="openai",key="${key}"\\} (\\d)$`, 'm')
  return line.exec(text)?.[1]
}

function act({ adminUrl }: RunningGateway, request: object): Promise<Response> {
  return fetch(`${adminUrl}/actions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ guard: 'openai', by: 'ann', ...request }),
  })
}

describe('one gateway', () => {
  it('the next key answers the request that found the first key exhausted, and all later ones', async () => {
    const vendor = await startKeyVendor()
    vendor.standing.set(FIRST, 'exhausted')
    const gateway = await start(vendor)
    for (let times = 0; times < 5; times++) {
      const answer = await gateway.chat()
      expect(answer.status).toBe(200)
      expect(answer.headers.get('spillway-decision')).toMatch(/^admitted/)
    }
    expect([vendor.requestsOf(FIRST), vendor.requestsOf(SECOND)]).toEqual([1, 5])
    expect([await metric(gateway, 'main'), await metric(gateway, 'spare')]).toEqual(['1', '0'])
  })

  it('a spent limit per day of one model pauses its lane until the reset, and the key is used for other models', async () => {
    const vendor = await startKeyVendor()
    vendor.standing.set(FIRST, { model: 'gpt-4o' })
    const gateway = await start(vendor, { key: 'env:FIRST', models: OWN_LANES })
    expect((await gateway.chat({ model: 'gpt-4o-mini' })).status).toBe(200)
    expect((await gateway.chat({ model: 'gpt-4o' })).status).toBe(429)
    const refused = await gateway.chat({ model: 'gpt-4o' })
    const { error } = (await refused.json()) as { error: { code: string } }
    expect(error.code).toBe('VENDOR_LIMITED')
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(10_000)
    expect((await gateway.chat({ model: 'gpt-4o-mini' })).status).toBe(200)
    expect(vendor.seen).toHaveLength(3)
    expect(await metric(gateway, 'default')).toBe('0')
  })

  it('a spent limit per day of a new model does not pause other new models until its reset', async () => {
    const vendor = await startKeyVendor()
    vendor.standing.set(FIRST, { model: 'gpt-4o' })
    const own = { key: 'env:FIRST', limits: [{ limit: 1_000, windowMs: '1m' }], maxPauseMs: 1 }
    const gateway = await start(vendor, own)
    expect((await gateway.chat({ model: 'gpt-4o' })).status).toBe(429)
    await vi.waitFor(async () => {
      expect((await gateway.chat({ model: 'gpt-4o-mini' })).status).toBe(200)
    }, PATIENCE)
    expect((await gateway.chat({ model: 'gpt-4o' })).status).toBe(429)
    const refused = await gateway.chat({ model: 'gpt-4o' })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(10_000)
    expect((await gateway.chat({ model: 'gpt-5' })).status).toBe(200)
  })

  it('another key answers for a model whose limit per day is used up, also in later requests', async () => {
    const vendor = await startKeyVendor()
    vendor.standing.set(FIRST, { model: 'gpt-4o' })
    const gateway = await start(vendor, { ...TWO_KEYS, models: OWN_LANES })
    const models = ['gpt-4o', 'gpt-4o', 'gpt-4o-mini', 'gpt-4o']
    for (const model of models) expect((await gateway.chat({ model })).status).toBe(200)
    expect([vendor.requestsOf(FIRST), vendor.requestsOf(SECOND)]).toEqual([2, 3])
    expect([await metric(gateway, 'main'), await metric(gateway, 'spare')]).toEqual(['0', '0'])
  })

  it('keyQuarantine: false keeps an invalid key in use', async () => {
    const vendor = await startKeyVendor()
    vendor.standing.set(FIRST, 'invalid')
    const gateway = await start(vendor, { ...TWO_KEYS, keyQuarantine: false })
    for (let times = 0; times < 5; times++) expect((await gateway.chat()).status).toBe(401)
    expect([vendor.requestsOf(FIRST), vendor.requestsOf(SECOND)]).toEqual([5, 0])
    expect(await metric(gateway, 'main')).toBeUndefined()
  })

  it('requests with the only key are refused with the reason, and do not reach the vendor', async () => {
    const vendor = await startKeyVendor()
    vendor.standing.set(FIRST, 'exhausted')
    const gateway = await start(vendor, { key: 'env:FIRST' })
    expect((await gateway.chat()).status).toBe(429)
    const refused = await gateway.chat()
    expect(refused.status).toBe(503)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(200)
    const { error } = (await refused.json()) as { error: { code: string; message: string } }
    expect(error.code).toBe('CIRCUIT_OPEN')
    expect(error.message).toContain('the key default is quarantined: its quota is exhausted')
    expect(vendor.seen).toHaveLength(1)
  })

  it('a refusal because of a key is counted and listed with its reason', async () => {
    const vendor = await startKeyVendor()
    const gateway = await start(vendor, { key: 'env:FIRST' })
    expect((await gateway.chat()).status).toBe(200)
    const reader = await readFeed(`${gateway.adminUrl}/dashboard/events`)
    await reader.until('hello')
    await act(gateway, { action: 'quarantine-key', key: 'default', forMs: '1h' })
    const refused = await gateway.chat()
    expect(refused.status).toBe(503)
    const requestId = refused.headers.get('spillway-request-id')
    const { records } = await reader.until('decisions', (news) =>
      news.records.some((each) => each.requestId === requestId),
    )
    expect(records.find((each) => each.requestId === requestId)).toMatchObject({
      code: 'CIRCUIT_OPEN',
      guard: 'openai',
      lane: 'gpt',
      why: expect.stringContaining('an operator quarantined it'),
    })
    const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
    expect(metrics).toMatch(/^spillway_refused_total\{[^}]*code="CIRCUIT_OPEN"[^}]*\} 1$/m)
  })

  it('a changed file with the secret lifts the quarantine', async () => {
    const vendor = await startKeyVendor()
    vendor.standing.set(FIRST, 'exhausted')
    const folder = mkdtempSync(join(tmpdir(), 'secret-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const file = join(folder, 'key')
    writeFileSync(file, FIRST)
    const config = { vendors: vendorsOf(vendor, { key: `file:${file}` }) }
    const { url, child, exit } = await startGatewayProcess({ config })
    const chat = async () => {
      const body = JSON.stringify({ model: 'gpt', messages: [] })
      const answer = await fetch(`${url}/v1/chat/completions`, { method: 'POST', body })
      await answer.text()
      return answer.status
    }
    expect([await chat(), await chat()]).toEqual([429, 503])
    writeFileSync(file, SECOND)
    await vi.waitFor(async () => expect(await chat()).toBe(200), PATIENCE)
    expect([vendor.requestsOf(FIRST), vendor.requestsOf(SECOND)]).toEqual([1, 1])
    child.kill('SIGTERM')
    expect(await exit).toBe(0)
  })

  it('three answers that a key is invalid quarantine it, and another secret lifts the quarantine', async () => {
    const vendor = await startKeyVendor()
    vendor.standing.set(FIRST, 'invalid')
    const gateway = await start(vendor, { key: 'env:FIRST' })
    const statuses = []
    for (let times = 0; times < 5; times++) statuses.push((await gateway.chat()).status)
    expect(statuses).toEqual([401, 401, 401, 503, 503])
    await gateway.rewrite({ vendors: vendorsOf(vendor, { key: 'env:SECOND' }) })
    expect((await gateway.chat()).status).toBe(200)
    expect([vendor.requestsOf(FIRST), vendor.requestsOf(SECOND)]).toEqual([3, 1])
    // The guard is kept, and so is the state of the old secret.
    await gateway.rewrite({ vendors: vendorsOf(vendor, { key: 'env:FIRST' }) })
    expect((await gateway.chat()).status).toBe(503)
  })

  it("callers' own keys are never quarantined", async () => {
    const vendor = await startKeyVendor()
    vendor.standing.set('theirs', 'invalid')
    const gateway = await start(vendor, {})
    const headers = { authorization: 'Bearer theirs' }
    for (let times = 0; times < 6; times++) {
      expect((await gateway.chat({}, { headers })).status).toBe(401)
    }
    expect(vendor.requestsOf('theirs')).toBe(6)
  })

  it('a fallback takes over while the only key of a vendor is rejected or quarantined', async () => {
    const [vendor, other] = [await startKeyVendor(), await startKeyVendor()]
    vendor.standing.set(FIRST, 'invalid')
    const backup = { protocol: 'openai', url: other.url, key: 'env:SECOND' }
    const gateway = await startGateway(
      {
        vendors: { ...vendorsOf(vendor, { key: 'env:FIRST' }), backup },
        routes: [{ vendor: 'openai', fallbacks: [{ vendor: 'backup' }] }],
      },
      {},
      ENV,
    )
    for (let times = 0; times < 6; times++) expect((await gateway.chat()).status).toBe(200)
    expect([vendor.seen.length, other.seen.length]).toEqual([3, 6])
  })

  it('a target that names a key uses no other', async () => {
    const vendor = await startKeyVendor()
    vendor.standing.set(SECOND, 'exhausted')
    const routes = [{ vendor: 'openai', key: 'spare' }]
    const gateway = await start(vendor, TWO_KEYS, { routes })
    expect([(await gateway.chat()).status, (await gateway.chat()).status]).toEqual([429, 503])
    expect(vendor.requestsOf(FIRST)).toBe(0)
  })

  it('requests in flight are not cut off when their key is quarantined', async () => {
    const vendor = await startKeyVendor()
    const gateway = await start(vendor)
    const together = Array.from({ length: 20 }, () => gateway.chat())
    vendor.standing.set(FIRST, 'exhausted')
    const statuses = (await Promise.all(together)).map(({ status }) => status)
    expect(statuses).toEqual(statuses.map(() => 200))
  })

  it('operators see, release and quarantine keys over the admin port', async () => {
    const vendor = await startKeyVendor()
    vendor.standing.set(FIRST, 'exhausted')
    const gateway = await start(vendor, { key: 'env:FIRST' })
    await gateway.chat()
    const keys = async () => {
      const report = (await (await fetch(`${gateway.adminUrl}/status`)).json()) as {
        guards: { keys: object[] }[]
      }
      return report.guards[0]?.keys
    }
    expect(await keys()).toMatchObject([{ key: 'default', reason: 'quota-exhausted' }])
    vendor.standing.clear()
    const released = await act(gateway, { action: 'release-key', key: 'default' })
    expect(await released.json()).toMatchObject({ message: 'released key default', key: 'default' })
    const answer = await gateway.chat()
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('hi')])
    expect(await keys()).toEqual([])
    await act(gateway, { action: 'quarantine-key', key: 'default', forMs: '1h' })
    const refused = await gateway.chat()
    expect([refused.status, await refused.text()]).toEqual([
      503,
      expect.stringContaining('an operator quarantined it'),
    ])
    const unknown = await act(gateway, { action: 'release-key', key: 'defualt' })
    expect([unknown.status, await unknown.text()]).toEqual([
      400,
      expect.stringContaining("'openai' has no key 'defualt'; it has default"),
    ])
  })
})

describe('fleet', () => {
  let redis: RedisServer
  beforeAll(async () => {
    redis = await startRedis()
  })
  afterAll(() => redis?.stop())

  const startFleet = async (vendor: KeyVendor, prefix: string, own: object) => {
    const written = {
      vendors: vendorsOf(vendor, own),
      // A busy machine is not an outage.
      redis: { url: 'env:REDIS_URL', prefix, commandTimeoutMs: '10s' },
    }
    const env = { ...ENV, REDIS_URL: redis.url }
    return Promise.all([1, 2, 3].map(() => startGateway(written, {}, env)))
  }

  it('an exhausted key gets at most one request per reset window once all gateways have the state of the key', async () => {
    const WINDOW_MS = 2_000
    const vendor = await startKeyVendor()
    const gateways = await startFleet(vendor, 'exhausted-', { key: 'env:FIRST' })
    for (const gateway of gateways) expect((await gateway.chat()).status).toBe(200)
    vendor.standing.set(FIRST, { windowMs: WINDOW_MS })
    await gateways[0]?.chat()
    const windowOf = (atMs: number) => Math.floor(atMs / WINDOW_MS)
    // Not the present window: on a busy machine the gateways may receive the state only in the next one.
    const known = windowOf(vendor.seen.at(-1)?.atMs ?? 0)
    for (const gateway of gateways) {
      await vi.waitFor(async () => expect(await metric(gateway, 'default')).toBe('1'), PATIENCE)
    }
    const refused: Response[] = []
    while (windowOf(Date.now()) < known + 4 || refused.length <= 30) {
      const answers = await Promise.all(gateways.map((gateway) => gateway.chat()))
      refused.push(...answers.filter(({ status }) => status === 503))
      await pauseMs(20)
    }
    expect(refused.length).toBeGreaterThan(30)
    const later = vendor.seen.map(({ atMs }) => windowOf(atMs)).filter((each) => each > known)
    expect(later.length).toBeGreaterThanOrEqual(1)
    expect(new Set(later).size).toBe(later.length)
  })

  it('a released key is used by all gateways, and no secret is in Redis', async () => {
    const vendor = await startKeyVendor()
    vendor.standing.set(FIRST, 'exhausted')
    const gateways = await startFleet(vendor, 'released-', { key: 'env:FIRST' })
    await gateways[0]?.chat()
    for (const gateway of gateways) {
      await vi.waitFor(async () => expect(await metric(gateway, 'default')).toBe('1'), PATIENCE)
    }
    const written = await everythingIn(redis)
    expect(written).toContain('default#')
    expect(written).not.toContain(FIRST)
    vendor.standing.clear()
    await act(gateways[1] as RunningGateway, { action: 'release-key', key: 'default' })
    for (const gateway of gateways) {
      await vi.waitFor(async () => expect(await metric(gateway, 'default')).toBe('0'), PATIENCE)
      expect((await gateway.chat()).status).toBe(200)
    }
  })
})

describe('spillway key', () => {
  let redis: RedisServer
  beforeAll(async () => {
    redis = await startRedis()
  })
  afterAll(() => redis?.stop())

  it('quarantines and releases a key of running gateways, through Redis alone', async () => {
    const vendor = await startKeyVendor()
    const written = {
      vendors: vendorsOf(vendor, { key: 'env:FIRST' }),
      redis: { url: redis.url, prefix: 'command-', commandTimeoutMs: '10s' },
    }
    const gateway = await startGateway(written, {}, ENV)
    const shell = openShell(written, ENV)
    const run = async (...args: string[]) => {
      const { code, stdout, stderr } = await shell.run(...args)
      expect([code, stderr]).toEqual([0, ''])
      return stdout
    }
    expect((await gateway.chat()).status).toBe(200)
    await run('key', 'quarantine', 'openai', 'default', '--for', '1h', '--by', 'ann')
    await vi.waitFor(async () => expect((await gateway.chat()).status).toBe(503), PATIENCE)
    expect(await run('status')).toMatch(/openai +default +quarantined/)
    const released = await run('key', 'release', 'openai', 'default', '--by', 'ann')
    expect(released).toContain('released key default')
    await vi.waitFor(async () => expect((await gateway.chat()).status).toBe(200), PATIENCE)
    expect(await run('status')).not.toContain('quarantined')
  })
})

/** All keys and values, as text. */
async function everythingIn({ send }: RedisServer): Promise<string> {
  const all: unknown[] = []
  for (const key of (await send('KEYS', '*')) as string[]) {
    const type = await send('TYPE', key)
    if (type === 'hash') all.push(key, await send('HGETALL', key))
    else if (type === 'zset') all.push(key, await send('ZRANGE', key, '0', '-1'))
    else all.push(key, await send('GET', key))
  }
  return JSON.stringify(all)
}
