// test-group: sockets

/** Operating a gateway over its admin port: permitted actions, access and audit. */
import type { SpillwayEvent } from 'spillway'
import { onEvent } from 'spillway'
import { describe, expect, it, onTestFinished } from 'vitest'
import { loadConfig } from '../src/config/load.js'
import { createGateway } from '../src/gateway.js'
import { startGateway, startVendor } from './gateway-kit.js'

const GUARD = {
  breaker: { failureRate: 0.5, minimumCalls: 5 },
  limits: [{ unit: 'requests', limit: 100, windowMs: '1m' }],
}
const ISOLATE = { action: 'isolate', guard: 'openai', forMs: '10m', by: 'ada' }

type Headers = Record<string, string>

function post(adminUrl: string, path: string, body: unknown, headers: Headers = {}) {
  return fetch(`${adminUrl}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

function actions(): Extract<SpillwayEvent, { type: 'operator.acted' }>[] {
  const emitted: Extract<SpillwayEvent, { type: 'operator.acted' }>[] = []
  onTestFinished(
    onEvent((event) => {
      if (event.type === 'operator.acted') emitted.push(event)
    }),
  )
  return emitted
}

/** A gateway whose log is recorded. */
async function startLogged(written: object, env: Record<string, string> = {}, read = false) {
  const { url } = await startVendor()
  const text = JSON.stringify({
    port: 0,
    host: '127.0.0.1',
    vendors: { openai: { protocol: 'openai', url, ...GUARD } },
    ...written,
  })
  let file = text
  const load = () => loadConfig({ file: 'test.yaml', text: file, env })
  const lines: SpillwayEvent[] = []
  const log = {
    request: () => {},
    event: (event: SpillwayEvent) => lines.push(event),
    failure: () => {},
    close: () => {},
  }
  const gateway = await createGateway(load(), { log, ...(read && { read: load }) })
  onTestFinished(() => gateway.close({ graceMs: 0, delayMs: 0 }))
  const { adminPort } = await gateway.start()
  const audit = () => lines.filter(({ type }) => type === 'operator.acted')
  const write = (next: string) => {
    file = next
  }
  return { adminUrl: `http://127.0.0.1:${adminPort}`, audit, write, text }
}

describe('admin actions from this machine', () => {
  it('isolate and close stop and resume calls to a vendor and are audited with their operator', async () => {
    const { adminUrl, chat } = await startGateway({ guard: GUARD })
    const emitted = actions()
    expect((await chat()).status).toBe(200)
    const done = await post(adminUrl, '/actions', ISOLATE)
    expect(done.status).toBe(200)
    expect(await done.json()).toMatchObject({ guard: 'openai', message: 'isolated all lanes' })
    const refused = await chat({ model: 'never used before' })
    expect(refused.status).toBe(503)
    expect(refused.headers.get('spillway-decision')).toContain('reason=CIRCUIT_OPEN')
    await post(adminUrl, '/actions', { action: 'close', guard: 'openai', by: 'ben' })
    expect((await chat()).status).toBe(200)
    expect(emitted).toMatchObject([
      {
        action: 'isolate',
        name: 'openai',
        by: 'ada',
        forMs: 600_000,
        from: '127.0.0.1',
        result: 'done',
      },
      { action: 'close', name: 'openai', by: 'ben', result: 'done' },
    ])
  })

  it('pause and override take effect, and /status shows the fleet from the store', async () => {
    const { adminUrl, chat } = await startGateway({ guard: GUARD })
    const about = { guard: 'openai', by: 'ada' }
    await post(adminUrl, '/actions', { action: 'pause', forMs: '10m', ...about })
    expect((await chat()).status).toBe(429)
    const limit = { action: 'override', unit: 'requests', limit: 7, forMs: '10m', ...about }
    await post(adminUrl, '/actions', limit)
    const status = (await (await fetch(`${adminUrl}/status`)).json()) as {
      guards: { name: string; limits: object[]; breakers: object[] }[]
    }
    const openai = status.guards.find(({ name }) => name === 'openai')
    expect(status).toMatchObject({ store: 'memory', livePods: 1 })
    expect(openai?.limits).toContainEqual(expect.objectContaining({ id: 'requests', limit: 7 }))
    expect(openai?.breakers).toContainEqual(expect.objectContaining({ state: 'closed' }))
  })

  it.each([
    [{ ...ISOLATE, guard: 'opnai' }, 400, "did you mean 'openai'?"],
    [{ ...ISOLATE, action: 'explode' }, 400, 'action: must be one of'],
    [{ ...ISOLATE, by: undefined }, 400, 'by: must be a line'],
    [{ ...ISOLATE, forMs: 'soon' }, 400, 'forMs: must be a duration'],
    ['{"action": ', 400, 'JSON'],
    ['[]', 400, 'action: must be one of'],
    ['', 400, 'JSON'],
    ['{"__proto__": {"by": "ada"}}', 400, '__proto__'],
    ['{"constructor": {"prototype": {}}}', 400, 'constructor'],
  ])('the invalid action %j is rejected with a reason', async (body, status, message) => {
    const { adminUrl } = await startGateway({ guard: GUARD })
    const answer = await post(adminUrl, '/actions', body)
    expect(answer.status).toBe(status)
    expect(await answer.text()).toContain(message.replaceAll('"', '\\"'))
  })
})

describe('admin requests', () => {
  it('an action larger than 64 KiB is refused without reading the rest of it', async () => {
    const { adminUrl, audit } = await startLogged({ admin: { port: 0 } })
    const answer = await post(adminUrl, '/actions', { ...ISOLATE, by: 'a'.repeat(65_536) })
    expect(answer.status).toBe(413)
    expect(answer.headers.get('connection')).toBe('close')
    expect(audit()).toMatchObject([{ result: 'refused', action: 'POST /actions' }])
  })

  it('admin routes answer HEAD without a body, and any other method with 404', async () => {
    const { adminUrl } = await startLogged({ admin: { port: 0 } })
    const head = await fetch(`${adminUrl}/status`, { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([200, ''])
    expect(Number(head.headers.get('content-length'))).toBeGreaterThan(2)
    for (const [method, path] of [
      ['GET', '/actions'],
      ['DELETE', '/status'],
      ['POST', '/metrics'],
      ['GET', '/status/'],
    ] as const) {
      expect((await fetch(`${adminUrl}${path}`, { method })).status).toBe(404)
    }
  })
})

describe('admin port and web pages in a local browser', () => {
  it.each<[string, Headers, string]>([
    ['of another site', { origin: 'https://evil.example' }, 'OTHER_SITE'],
    ['of another port', { origin: 'http://127.0.0.1:3000' }, 'OTHER_SITE'],
    ['with origin null', { origin: 'null' }, 'OTHER_SITE'],
    ['with a cross-site request', { 'sec-fetch-site': 'cross-site' }, 'OTHER_SITE'],
    ['with a same-site request', { 'sec-fetch-site': 'same-site' }, 'OTHER_SITE'],
    ['under another host name', { host: 'rebound.example' }, 'WRONG_HOST'],
    ['that sends a form', { 'content-type': 'text/plain' }, 'NOT_JSON'],
    [
      'that sends another form',
      { 'content-type': 'application/x-www-form-urlencoded' },
      'NOT_JSON',
    ],
  ])('an action of a page %s is refused and audited', async (_, headers, code) => {
    const { adminUrl, audit } = await startLogged({ admin: { port: 0 } })
    const { status, text } = await rawPost(adminUrl, '/actions', ISOLATE, headers)
    expect(status).toBeGreaterThanOrEqual(400)
    expect(text).toContain(code)
    expect(audit()).toMatchObject([
      { result: 'refused', from: '127.0.0.1', action: 'POST /actions' },
    ])
    const fleet = await (await fetch(`${adminUrl}/status`)).text()
    expect(fleet).not.toContain('isolated')
  })

  it("an action of the dashboard's own page is accepted", async () => {
    const { adminUrl } = await startLogged({ admin: { port: 0 } })
    const own = { origin: adminUrl, 'sec-fetch-site': 'same-origin' }
    expect((await rawPost(adminUrl, '/actions', ISOLATE, own)).status).toBe(200)
  })

  it('the admin port serves nothing under another host name', async () => {
    const { adminUrl } = await startLogged({ admin: { port: 0 } })
    const by = { host: 'rebound.example' }
    for (const path of ['/status', '/snapshot', '/config', '/health/ready', '/metrics']) {
      expect((await rawPost(adminUrl, path, undefined, by)).status).toBe(403)
    }
  })
})

describe('admin token', () => {
  const TOKEN = 'a-token-of-some-length'
  const withToken = { admin: { port: 0, token: 'env:ADMIN_TOKEN' } }

  it('with a token, actions from this machine need it as well', async () => {
    const { adminUrl, audit } = await startLogged(withToken, { ADMIN_TOKEN: TOKEN })
    for (const authorization of ['', 'Bearer', `Basic ${TOKEN}`, `Bearer ${TOKEN}x`, TOKEN]) {
      const answer = await post(adminUrl, '/actions', ISOLATE, { authorization })
      expect(answer.status).toBe(401)
      expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    }
    expect((await fetch(`${adminUrl}/status`)).status).toBe(401)
    expect(audit()).toHaveLength(6)
    const shown = { authorization: `Bearer ${TOKEN}` }
    expect((await post(adminUrl, '/actions', ISOLATE, shown)).status).toBe(200)
    expect(audit().at(-1)).toMatchObject({ result: 'done', by: 'ada' })
    expect(JSON.stringify(audit())).not.toContain(TOKEN)
  })

  it('with a token, the dashboard data needs it unless admin.readAccess allows more readers', async () => {
    const events = async (admin: object) => {
      const written = { admin: { ...withToken.admin, ...admin } }
      const { adminUrl } = await startLogged(written, { ADMIN_TOKEN: TOKEN })
      const status = async (path: string, headers: Headers = {}) => {
        const response = await fetch(`${adminUrl}${path}`, { headers })
        await response.body?.cancel()
        return response.status
      }
      // The page contains no data and prompts for the token.
      expect(await status('/dashboard/')).toBe(200)
      const authorization = `Bearer ${TOKEN}`
      expect(await status('/dashboard/events', { authorization })).toBe(200)
      expect((await post(adminUrl, '/actions', ISOLATE)).status).toBe(401)
      return [await status('/dashboard/events'), await status('/status')]
    }
    expect(await events({})).toEqual([401, 401])
    expect(await events({ readAccess: 'local' })).toEqual([200, 200])
  })

  it('health and metrics need no token', async () => {
    const { adminUrl } = await startLogged(withToken, { ADMIN_TOKEN: TOKEN })
    for (const path of ['/health/live', '/health/ready', '/health/deep', '/metrics']) {
      expect((await fetch(`${adminUrl}${path}`)).status).toBe(200)
    }
  })

  it('an exposed admin port without a token refuses everything but health', async () => {
    const open = { admin: { port: 0, host: '0.0.0.0' } }
    const { adminUrl } = await startLogged(open)
    const refused = await post(adminUrl, '/actions', ISOLATE)
    expect(refused.status).toBe(403)
    expect(await refused.text()).toContain('no admin token is set')
    expect((await fetch(`${adminUrl}/dashboard/events`)).status).toBe(403)
    expect((await fetch(`${adminUrl}/health/ready`)).status).toBe(200)
  })
})

describe('configuration over the admin port', () => {
  it('a configuration is checked, rejected with its mistakes and reloaded', async () => {
    const { adminUrl, audit, write, text } = await startLogged({ admin: { port: 0 } }, {}, true)
    const by = { by: 'ada' }
    expect((await post(adminUrl, '/config/check', by)).status).toBe(200)
    write(text.replace('"limit":100', '"limit":"many"'))
    const wrong = await post(adminUrl, '/config/reload', by)
    expect(wrong.status).toBe(422)
    expect(await wrong.text()).toContain('must be a positive integer')
    write(text.replace('"limit":100', '"limit":50'))
    const right = await post(adminUrl, '/config/reload', by)
    expect(await right.json()).toMatchObject({ ok: true, message: 'applied' })
    expect(await (await fetch(`${adminUrl}/config`)).json()).toMatchObject({ generation: 2 })
    expect(audit()).toMatchObject([
      { action: 'POST /config/check', by: 'ada', result: 'done' },
      { action: 'POST /config/reload', by: 'ada', result: 'refused' },
      { action: 'POST /config/reload', by: 'ada', result: 'done' },
    ])
  })

  it('reload is answered with 501 when there is no configuration file', async () => {
    const { adminUrl } = await startLogged({ admin: { port: 0 } })
    expect((await post(adminUrl, '/config/reload', { by: 'ada' })).status).toBe(501)
  })
})

/** `fetch` does not allow setting the origin of a request. */
async function rawPost(adminUrl: string, path: string, body: unknown, headers: Headers) {
  const { request } = await import('node:http')
  return new Promise<{ status: number; text: string }>((resolve, reject) => {
    const content = body === undefined ? undefined : JSON.stringify(body)
    const sent = request(
      `${adminUrl}${path}`,
      {
        method: content === undefined ? 'GET' : 'POST',
        headers: {
          ...(content !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
      },
      (answer) => {
        let text = ''
        answer.setEncoding('utf8').on('data', (chunk) => {
          text += chunk
        })
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }))
      },
    )
    sent.on('error', reject)
    sent.end(content)
  })
}
