// test-group: io, slow

/**
 * Keys, tokens and prompts in every possible place: no output of the gateway contains them, except
 * requests to a vendor and its answers.
 */

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { type RedisServer, startRedis } from '../../../spillway/test/redis-server.js'
import { loadConfig } from '../../src/config/load.js'
import { startGateway } from '../gateway-kit.js'
import { type GatewayProcess, startGatewayProcess } from '../gateway-process.js'
import { exchangeRaw } from './raw.js'
import { PATH } from './tricks.js'

/** Each has its own form, so a finding shows where it came from. */
const PLANTED = {
  vendorKey: 'sk-proj-Vendor0Key1Planted2Here3',
  vendorHeader: 'vendor-header-planted-91c2',
  callerKey: 'caller-key-planted-77aa',
  unknownKey: 'unknown-key-planted-5d5d',
  hashedKey: 'hashed-key-planted-e3e3',
  redisPassword: 'redis-planted-password-b4b4',
  environment: 'environment-planted-c0de',
  prompt: 'my planted prompt about the merger',
  promptAsModel: 'tell me the planted secret plan',
  keyAsModel: 'sk-ant-api03-Model0Planted1Key2',
  keyAsUser: 'ghp_User0Planted1Key2Here3Now4',
  keyAsRequestId: 'sk-live-RequestId0Planted1',
  keyInPath: 'AKIAPLANTED0PATH1KEY',
  hexInPath: '0123456789abcdef0123456789ab91ed',
  textInPath: 'planted%20text%20in%20a%20path',
  query: 'query-planted-f00d',
  header: 'header-planted-beef',
  cookie: 'cookie-planted-cafe',
  configSecret: 'config-planted-secret-4242',
} as const

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis({
    settings: { requirepass: PLANTED.redisPassword },
    login: `:${PLANTED.redisPassword}@`,
  })
})
afterAll(() => redis?.stop())

/** Behaves as the header x-do specifies, and echoes nothing. */
async function startOddVendor() {
  const prompts: string[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      prompts.push(body)
      const what = request.headers['x-do']
      if (what === 'cut') return void request.socket.destroy()
      if (what === 'hang') return undefined
      if (what === 'garbage') return void request.socket.end('HTTP/1.1 two hundred\r\n\r\n')
      if (what === 'stream-cut') {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write('data: {}\n\n')
        return void setTimeout(() => request.socket.destroy(), 20)
      }
      response.writeHead(Number(what ?? 200), {
        'content-type': 'application/json',
        'set-cookie': PLANTED.cookie,
      })
      return void response.end('{}')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close().closeAllConnections())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, prompts }
}

const env = {
  VENDOR_KEY: PLANTED.vendorKey,
  VENDOR_HEADER: PLANTED.vendorHeader,
  CALLER_KEY: PLANTED.callerKey,
  OTHER: PLANTED.environment,
}

const FAILURES = ['401', '500', '503', 'cut', 'garbage', 'hang', 'stream-cut', '429']
/** The model of a vendor that does not answer. */
const SILENT = 'gpt-hang'
const MODELS = ['gpt', 'gpt-limit', ...FAILURES.map((what) => `gpt-${what}`)].filter(
  (model) => model !== SILENT,
)

function configFor(url: string, redisUrl: string, callers: object[] | undefined) {
  const guard = {
    protocol: 'openai',
    url,
    key: 'env:VENDOR_KEY',
    headers: { 'x-secret': 'env:VENDOR_HEADER' },
    userLimits: [{ per: 'user', limit: 40, windowMs: '1h' }],
    // Calls also wait in the queue while Redis answers.
    queue: { size: 2, timeoutMs: '1m' },
    breaker: { consecutiveFailures: 8, openMs: '1s' },
    limits: [{ unit: 'tokens', limit: 1_000_000, windowMs: '1m' }],
    concurrency: { limit: 4 },
    // A vendor that answers has time to do so on a busy machine.
    timeout: { firstByteMs: '1m' },
    retry: { attempts: 2, baseMs: 5 },
  }
  return {
    // A busy machine is not an outage.
    redis: { url: redisUrl, commandTimeoutMs: '10s' },
    vendors: {
      openai: guard,
      silent: { ...guard, queue: { size: 2, timeoutMs: 100 }, timeout: { firstByteMs: 800 } },
      nowhere: { ...guard, url: 'http://127.0.0.1:1' },
    },
    routes: [
      { path: '/v1/*', vendor: 'silent', name: 'silent', models: [SILENT] },
      { path: '/v1/nowhere', vendor: 'nowhere', name: 'nowhere' },
      { path: '/only', vendor: 'openai', models: ['gpt*'], name: 'only' },
      // Named, so that failures of one do not open the breaker of another.
      { path: '/v1/*', vendor: 'openai', name: 'named', models: MODELS },
      { path: '/v1/*', vendor: 'openai', name: 'all' },
    ],
    ...(callers && { callers }),
    body: { maxBytes: '64kb' },
    server: { bodyMs: 2_000 },
    log: { level: 'debug' },
  }
}

/** Everything that a caller, an operator or a log collector can see. */
async function drive(gateway: GatewayProcess, key: string): Promise<string[]> {
  const { url, adminUrl } = gateway
  const seen: string[] = []
  const ask = async (
    path: string,
    headers: Record<string, string> = {},
    body: object | string = {},
  ) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const answer = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        cookie: PLANTED.cookie,
        'x-something': PLANTED.header,
        ...headers,
      },
      body: text,
    })
    seen.push(JSON.stringify([...answer.headers]))
    seen.push(`${answer.status} ${await answer.text().catch((error) => String(error))}`)
    return answer.status
  }
  const chat = { model: 'gpt', messages: [{ role: 'user', content: PLANTED.prompt }] }
  const path = `${PATH}?key=${PLANTED.query}`
  const statuses = [
    await ask(path, {}, chat),
    await ask(path, { 'x-request-id': PLANTED.keyAsRequestId }, chat),
    await ask(path, { 'x-request-id': key }, chat),
    await ask(path, { 'spillway-user': PLANTED.keyAsUser, 'spillway-tier': PLANTED.prompt }, chat),
    await ask(path, {}, { ...chat, model: PLANTED.keyAsModel }),
    await ask(path, {}, { ...chat, model: PLANTED.promptAsModel }),
    await ask(path, {}, { ...chat, model: key }),
    await ask('/only', {}, { ...chat, model: PLANTED.promptAsModel }),
    await ask('/only', {}, { ...chat, model: PLANTED.keyAsModel }),
    await ask(`/v1/${key}`, {}, chat),
    await ask(`/v1/${PLANTED.keyInPath}/x`, {}, chat),
    await ask(`/${PLANTED.hexInPath}?${PLANTED.query}`, {}, chat),
    await ask(`/${PLANTED.textInPath}`, {}, chat),
    await ask('/v1/nowhere', {}, chat),
    await ask(path, {}, `{"model": "gpt", ${PLANTED.prompt}`),
    await ask(path, {}, JSON.stringify(PLANTED.prompt.repeat(3_000))),
    await ask(path, { authorization: `Bearer ${PLANTED.unknownKey}` }, chat),
    await ask(path, { authorization: PLANTED.unknownKey, 'x-api-key': PLANTED.unknownKey }, chat),
    await ask(path, { 'spillway-deadline-ms': '1', 'x-do': 'hang' }, chat),
  ]
  for (const what of FAILURES) {
    statuses.push(
      await ask(
        path,
        { 'x-do': what },
        { ...chat, model: `gpt-${what}`, stream: what === 'stream-cut' },
      ),
    )
  }
  const crowd = Array.from({ length: 12 }, () =>
    ask(path, { 'x-do': 'hang' }, { ...chat, model: SILENT }),
  )
  statuses.push(...(await Promise.all(crowd)))
  while (statuses.length < 60) statuses.push(await ask(path, {}, { ...chat, model: 'gpt-limit' }))
  const head = `POST ${PATH} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n`
  for (const raw of [
    `${head}X-A: ${PLANTED.header}\0\r\n\r\n`,
    `${head}Content-Length: 3\r\nContent-Length: 4\r\n\r\n${PLANTED.prompt}`,
    `${head}Content-Length: 300\r\n\r\n${PLANTED.prompt}`,
    `${head}Transfer-Encoding: chunked\r\n\r\n${PLANTED.prompt}`,
    `GET /../${PLANTED.keyInPath} HTTP/1.1\r\nHost: ${PLANTED.header}\r\n\r\n`,
    `GET http://${PLANTED.header}/ HTTP/1.1\r\nHost: a\r\n\r\n`,
    `${PLANTED.prompt}\r\n\r\n`,
    `CONNECT ${PLANTED.header}:443 HTTP/1.1\r\nHost: a\r\n\r\n`,
  ]) {
    seen.push((await exchangeRaw(url, raw)).text)
  }
  for (const page of [
    '/health/live',
    '/health/ready',
    '/health/deep',
    '/metrics',
    '/snapshot',
    `/${PLANTED.query}?token=${PLANTED.header}`,
  ]) {
    const answer = await fetch(`${adminUrl}${page}`, {
      headers: { authorization: `Bearer ${key}` },
    })
    seen.push(JSON.stringify([...answer.headers]), await answer.text())
  }
  // Makes sure that every kind of end occurs.
  for (const status of [200, 400, 401, 404, 413, 429, 500, 502, 503, 504]) {
    expect(statuses, JSON.stringify(statuses)).toContain(status)
  }
  return seen
}

function expectNothingPlanted(texts: readonly string[], but: readonly string[] = []): void {
  for (const [name, secret] of Object.entries(PLANTED)) {
    if (but.includes(name)) continue
    const forms = [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64')]
    for (const text of texts) {
      const form = forms.find((each) => text.includes(each))
      if (form === undefined) continue
      const at = text.indexOf(form)
      expect.fail(`${name} is in: …${text.slice(Math.max(0, at - 200), at + 200)}…`)
    }
  }
}

async function stop(gateway: GatewayProcess): Promise<string[]> {
  gateway.child.kill('SIGTERM')
  await gateway.exit
  return [...gateway.stdout().split('\n'), gateway.stderr()]
}

it('no secret of a request, key, environment or store appears in any output', async () => {
  const { url, prompts } = await startOddVendor()
  const hash = 'bbf0e3d9b1a84e9d3f3ac4a6a5d6be0f2ef5e4b9cbb0fdb6f0bbd7f9f3bb6a1d'
  const callers = [
    { key: 'env:CALLER_KEY', user: 'ann', tier: 'pro' },
    { key: `sha256:${hash}`, user: 'bob' },
  ]
  const shared = { ...env, STORE: redis.url }
  const [known, open] = await Promise.all([
    startGatewayProcess({ config: configFor(url, 'env:STORE', callers), env: shared }),
    startGatewayProcess({
      config: configFor(url, 'env:STORE', undefined),
      // A wrong password, so the server's reply goes into the log.
      env: { ...env, STORE: redis.url.replace(PLANTED.redisPassword, `x${PLANTED.redisPassword}`) },
    }),
  ])
  const seen = await Promise.all([drive(known, PLANTED.callerKey), drive(open, PLANTED.hashedKey)])
  expect(prompts.some((body) => body.includes(PLANTED.prompt))).toBe(true)
  const logs = await Promise.all([stop(known), stop(open)])
  const all = [...seen.flat(), ...logs.flat()]
  expect(logs[0]?.length).toBeGreaterThan(50)
  expectNothingPlanted(all)
})

it('no secret of a configuration with mistakes is reported', async () => {
  const secret = PLANTED.configSecret
  const good = { protocol: 'openai', key: 'env:VENDOR_KEY' }
  const broken: object[] = [
    { vendors: { a: { ...good, key: secret } } },
    { vendors: { a: { ...good, keys: { main: secret, [secret]: 'x' } } } },
    {
      vendors: { a: { ...good, headers: { authorization: `Bearer ${secret}`, 'x-b': [secret] } } },
    },
    { vendors: { a: { ...good, url: `https://user:${secret}@host` } } },
    { vendors: { a: { ...good, url: `https://host?key=${secret}` } } },
    { vendors: { a: { ...good, api_key: secret, token: { value: secret } } } },
    { vendors: { a: good }, callers: [{ key: secret, user: 'ann' }, secret] },
    { vendors: { a: good }, callers: { [secret]: 'ann' } },
    { vendors: { a: good }, callers: [{ key: `sha256:${secret}`, user: 'ann' }] },
    { vendors: { a: good }, redis: `redis://:${secret}@host` },
    { vendors: { a: good }, redis: { url: secret } },
    { vendors: { a: { ...good, key: 'env:NOT_THERE' } }, admin: { token: secret, prot: 1 } },
  ]
  const { exit, stderr, stdout } = await startGatewayProcess({ config: broken[0] as object, env })
  expect(await exit).toBe(1)
  const reports = broken.map((config) => {
    const text = JSON.stringify(config)
    return messageOf(() => loadConfig({ file: 'spillway.yaml', text, env }))
  })
  for (const text of [stderr(), ...reports]) expect(text).toContain('spillway.yaml:1:')
  expectNothingPlanted([stderr(), stdout(), ...reports])
})

function messageOf(load: () => unknown): string {
  try {
    load()
  } catch (error) {
    return (error as Error).message
  }
  return 'nothing wrong'
}

it('a key configured by its hash is accepted, and no other', async () => {
  const { url } = await startOddVendor()
  const digest = createHash('sha256').update(PLANTED.hashedKey).digest('hex')
  const { chat } = await startGateway({
    guard: { url },
    callers: [{ key: `sha256:${digest}`, user: 'bob' }],
  })
  const as = (key: string) => chat({}, { headers: { authorization: `Bearer ${key}` } })
  expect((await as(PLANTED.hashedKey)).status).toBe(200)
  expect((await as(digest)).status).toBe(401)
  expect((await as(`sha256:${digest}`)).status).toBe(401)
  expect((await as('')).status).toBe(401)
})
