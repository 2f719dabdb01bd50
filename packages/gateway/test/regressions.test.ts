// test-group: sockets, slow

/** Fixed bugs, each with the claim that it broke. */
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { pauseMs, readAll, until } from '../../spillway/test/streams/stream-kit.js'
import { expectIdle, startGateway, startVendor } from './gateway-kit.js'

/** A vendor whose handler the test provides. */
async function serve(handle: RequestListener): Promise<string> {
  const server = createServer(handle).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close().closeAllConnections())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A vendor that writes raw bytes. */
async function serveRaw(answer: (write: (text: string) => void, cut: () => void) => void) {
  const server = createTcpServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () =>
      answer(
        (text) => socket.write(text),
        () => socket.destroy(),
      ),
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const HEAD =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n'

describe('cut between the headers and the first byte', () => {
  it('a cut before the first byte counts as a failure and returns everything', async () => {
    const url = await serveRaw((write, cut) => {
      write(HEAD)
      setTimeout(cut, 30)
    })
    const running = await startGateway({
      guard: { url, breaker: { consecutiveFailures: 3, openMs: '1m' } },
    })
    for (let i = 0; i < 3; i++) expect((await running.chat({ stream: true })).status).toBe(502)
    expect((await running.chat({ stream: true })).status).toBe(503)
    await expectIdle(running)
    const guard = running.gateway.spillway.snapshot().guards.find(({ name }) => name === 'openai')
    expect(guard).toMatchObject({ active: 0, outcomes: { failure: 3 } })
  })
})

describe('requests that are not idempotent', () => {
  async function startPair(first: RequestListener) {
    const seen: string[] = []
    const one = await serve((request, response) => {
      seen.push('one')
      first(request, response)
    })
    const two = await serve((_, response) => {
      seen.push('two')
      response.end('done')
    })
    const { url } = await startGateway({
      vendors: {
        one: { protocol: 'http', url: one, timeout: { callMs: 200 }, retry: { attempts: 3 } },
        two: { protocol: 'http', url: two },
      },
      routes: [{ path: '/pay', vendor: 'one', fallbacks: [{ vendor: 'two' }] }],
    })
    const pay = (headers: Record<string, string> = {}) =>
      fetch(`${url}/pay`, { method: 'POST', headers, body: '1' })
    return { seen, pay }
  }

  it.each([
    ['fails', 500],
    ['falls silent', 504],
  ])('a POST is not sent to another target when the first %s', async (how, status) => {
    const { seen, pay } = await startPair((_, response) => {
      if (how === 'fails') response.writeHead(500).end()
    })
    expect((await pay()).status).toBe(status)
    // On a busy machine the timeout may pass before the request arrives.
    if (status !== 504 || seen.length > 0) expect(seen).toEqual(['one'])
  })

  it('a POST is sent to another target when the first one refused it', async () => {
    const refusing = await startPair((_, response) => void response.writeHead(429).end())
    expect((await refusing.pay()).status).toBe(200)
    expect(refusing.seen).toEqual(['one', 'two'])
    const failing = await startPair((_, response) => void response.writeHead(501).end())
    expect((await failing.pay({ 'idempotency-key': 'k' })).status).toBe(501)
  })

  it('a POST is sent to another target when the first one cannot be reached', async () => {
    const two = await serve((_, response) => void response.end('done'))
    const { url } = await startGateway({
      vendors: {
        one: { protocol: 'http', url: 'http://127.0.0.1:9' },
        two: { protocol: 'http', url: two },
      },
      routes: [{ path: '/pay', vendor: 'one', fallbacks: [{ vendor: 'two' }] }],
    })
    expect((await fetch(`${url}/pay`, { method: 'POST', body: '1' })).status).toBe(200)
  })

  it('OpenAI requests that create something are sent only once', async () => {
    let requestCount = 0
    const vendor = await serve((_, response) => {
      requestCount++
      response.writeHead(500).end()
    })
    const { url } = await startGateway({
      guard: { url: vendor, retry: { attempts: 3, budget: 1, baseMs: 1 } },
      routes: [{ path: '/v1/*', vendor: 'openai' }],
    })
    await fetch(`${url}/v1/fine_tuning/jobs`, { method: 'POST', body: '{}' })
    expect(requestCount).toBe(1)
    await fetch(`${url}/v1/embeddings`, { method: 'POST', body: '{"model":"m"}' })
    expect(requestCount).toBe(4)
  })
})

describe('mistakes of the caller', () => {
  const breaker = { consecutiveFailures: 2, openMs: '1m' }

  it('a body that is too large does not open the circuit', async () => {
    const vendor = await serve((request, response) => {
      request
        .on('error', () => {})
        .resume()
        .on('end', () => response.end('ok'))
    })
    const { url } = await startGateway({
      vendors: { upload: { protocol: 'http', url: vendor, breaker } },
      routes: [{ path: '/upload', vendor: 'upload' }],
      body: { keepBytes: '1kb', maxBytes: '20kb' },
    })
    for (let i = 0; i < 4; i++) {
      const pieces = ReadableStream.from(
        (async function* () {
          for (let piece = 0; piece < 10; piece++) yield Buffer.alloc(5_000)
        })(),
      )
      const init = { method: 'POST', body: pieces, duplex: 'half' } as RequestInit
      await fetch(`${url}/upload`, init).catch(() => undefined)
    }
    expect((await fetch(`${url}/upload`, { method: 'POST', body: 'small' })).status).toBe(200)
  })

  it('a body that never arrives does not open the circuit', async () => {
    const vendor = await serve((request, response) => {
      request
        .on('error', () => {})
        .resume()
        .on('end', () => response.end('ok'))
    })
    const running = await startGateway({
      vendors: { upload: { protocol: 'http', url: vendor, breaker, timeout: { callMs: 100 } } },
      routes: [{ path: '/upload', vendor: 'upload' }],
      body: { keepBytes: '1kb' },
    })
    for (let i = 0; i < 3; i++) {
      const socket = connect(Number(new URL(running.url).port), '127.0.0.1')
      socket.on('error', () => {})
      socket.write(
        `POST /upload HTTP/1.1\r\nhost: x\r\ncontent-length: 9000\r\n\r\n${'x'.repeat(3_000)}`,
      )
      await pauseMs(250)
      socket.destroy()
    }
    const answer = await fetch(`${running.url}/upload`, { method: 'POST', body: 'small' })
    expect(answer.status).toBe(200)
  })

  it('a deadline that cannot be met does not open the circuit', async () => {
    const { chat } = await startGateway({ guard: { breaker } }, { knobs: { latencyMs: 100 } })
    for (let i = 0; i < 4; i++) {
      const answer = await chat({}, { headers: { 'spillway-deadline-ms': '20' } })
      expect(answer.status).toBe(504)
    }
    expect((await chat()).status).toBe(200)
  })
})

describe('pipelined requests', () => {
  it('pipelined requests end when their connection does', async () => {
    const running = await startGateway({}, { knobs: { tokens: 10_000, tokenMs: 10 } })
    const socket = connect(Number(new URL(running.url).port), '127.0.0.1')
    socket.on('error', () => {})
    const body = JSON.stringify({ model: 'gpt', stream: true, messages: [] })
    const one = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    socket.write(one.repeat(4))
    await until('all are at the vendor', () => running.vendor.atOnce === 4)
    socket.destroy()
    await expectIdle(running)
    await expect.poll(() => running.records.length).toBe(4)
    await running.gateway.close({ graceMs: 10_000 })
  })
})

describe('names chosen by clients', () => {
  it('an empty or very long model name is answered with 400', async () => {
    const { chat } = await startGateway()
    expect((await chat({ model: 'x'.repeat(100_000) })).status).toBe(400)
    expect((await chat({ model: '' })).status).toBe(400)
  })

  it('model names of clients create a bounded number of lanes', async () => {
    const startedMs = performance.now()
    const running = await startGateway(
      { guard: { concurrency: { limit: 150 } } },
      { knobs: { tokens: 1 } },
    )
    const decisions = () =>
      Promise.all(
        Array.from({ length: 150 }, async (_, i) => {
          const answer = await running.chat({ model: `model-${i}` })
          await answer.text()
          return answer.headers.get('spillway-decision') ?? ''
        }),
      )
    // A model has a lane once it was answered, and its next request uses that lane.
    await decisions()
    const lanes = (await decisions()).filter((each) => each.includes('lane="model-')).length
    // 20 at once and 5 more per second.
    expect(lanes).toBeGreaterThanOrEqual(20)
    const seconds = (performance.now() - startedMs) / 1_000
    expect(lanes).toBeLessThanOrEqual(20 + 5 * seconds)
  })
})

describe('estimated tokens', () => {
  const guard = { limits: [{ unit: 'tokens', limit: 1_000, windowMs: '1h' }] }

  it.each([400, 401, 404, 500])('tokens are returned after status %i', async (status) => {
    const { chat, vendor } = await startGateway({ guard }, { knobs: { status } })
    expect((await chat({ max_tokens: 900 })).status).toBe(status)
    vendor.set({ errorRate: 0 })
    expect((await chat({ max_tokens: 900 })).status).toBe(200)
  })

  it('estimated tokens are returned when the vendor cannot be reached', async () => {
    const running = await startGateway({ guard: { ...guard, url: 'http://127.0.0.1:9' } })
    for (let i = 0; i < 3; i++) expect((await running.chat({ max_tokens: 900 })).status).toBe(502)
  })

  it('requests that generate nothing reserve no tokens', async () => {
    const { url } = await startGateway({ guard, routes: [{ vendor: 'openai' }] })
    for (let i = 0; i < 5; i++) expect((await fetch(`${url}/v1/models`)).status).toBe(200)
  })
})

describe('body too large to be kept', () => {
  const large = (fields: object) => ({
    ...fields,
    messages: [{ role: 'user', content: 'x'.repeat(5_000) }],
  })

  it('a large body is routed by its own model and not by a nested one', async () => {
    const { chat, vendor } = await startGateway({
      routes: [{ vendor: 'openai', models: ['cheap'] }],
      body: { keepBytes: 2_000 },
    })
    const sneaky = large({ metadata: { model: 'cheap' }, model: 'expensive' })
    expect((await chat(sneaky)).status).toBe(404)
    expect((await chat(large({ model: 'cheap' }))).status).toBe(200)
    expect(vendor.calls.map(({ model }) => model)).toEqual(['cheap'])
  })

  it('a large body has its model replaced by the one of its target', async () => {
    const { chat, vendor } = await startGateway({
      routes: [{ vendor: 'openai', model: 'other' }],
      body: { keepBytes: 2_000 },
    })
    expect((await chat(large({ model: 'gpt' }))).status).toBe(200)
    expect(vendor.calls.map(({ model }) => model)).toEqual(['other'])
  })

  it('a large body goes to the fallback if the first target has not begun to read it', async () => {
    const { url } = await startVendor()
    const { chat } = await startGateway({
      guard: { limits: [{ limit: 1, windowMs: '1h' }] },
      vendors: { spare: { protocol: 'openai', url } },
      routes: [{ vendor: 'openai', models: ['gpt'], fallbacks: [{ vendor: 'spare' }] }],
      body: { keepBytes: 2_000 },
    })
    expect((await chat(large({ model: 'gpt' }))).headers.get('spillway-vendor')).toBe('openai')
    expect((await chat(large({ model: 'gpt' }))).headers.get('spillway-vendor')).toBe('spare')
  })
})

describe('a client that stops reading', () => {
  it('a client that stops reading keeps no connection once the vendor call has ended', async () => {
    const guard = { timeout: { unreadMs: 300 } }
    const running = await startGateway({ guard }, { knobs: { tokens: 300_000 } })
    const body = JSON.stringify({ model: 'gpt', stream: true, messages: [] })
    const socket = connect(Number(new URL(running.url).port), '127.0.0.1')
    socket.on('error', () => {})
    socket.pause()
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    )
    await until('it is recorded', () => running.records.length === 1)
    expect(running.records[0]).toMatchObject({ end: 'abandoned' })
    socket.destroy()
    await expectIdle(running)
  })
})

describe('request records', () => {
  it('a record of a disconnected client does not blame the vendor', async () => {
    const running = await startGateway({}, { knobs: { tokens: 1_000, tokenMs: 10 } })
    const leave = new AbortController()
    const answer = await running.chat({ stream: true }, { signal: leave.signal })
    await answer.body?.getReader().read()
    leave.abort()
    await until('it is recorded', () => running.records.length === 1)
    expect(running.records[0]).toMatchObject({ code: 'HUNG_UP', end: 'aborted' })
  })

  it('attempts are counted for the vendor that received them', async () => {
    const { url } = await startVendor()
    const running = await startGateway(
      {
        guard: { retry: { attempts: 3, budget: 1, baseMs: 1 } },
        vendors: { two: { protocol: 'openai', url } },
        routes: [{ vendor: 'openai', fallbacks: [{ vendor: 'two' }] }],
      },
      { knobs: { status: 500 } },
    )
    await running.chat()
    await until('it is recorded', () => running.records.length === 1)
    const text = await (await fetch(`${running.adminUrl}/metrics`)).text()
    expect(text).toContain('spillway_attempts_total{vendor="openai"} 3')
    expect(text).toContain('spillway_attempts_total{vendor="two"} 1')
  })

  it('an error after a stream was promised is recorded', async () => {
    const running = await startGateway(
      { routes: [{ vendor: 'openai', keepAliveMs: 20 }] },
      { knobs: { latencyMs: 100, status: 400 } },
    )
    const { chunks } = await readAll((await running.chat({ stream: true })).body!)
    expect(Buffer.concat(chunks).toString()).toMatch(/answered with status 400: .*message/s)
    await until('it is recorded', () => running.records.length === 1)
    expect(running.records[0]).toMatchObject({ code: 'VENDOR_ERROR' })
  })
})

describe('failing answer with a stalled body', () => {
  it('a failing answer with a stalled body is replaced by the fallback at once', async () => {
    const one = await serveRaw((write) => write('HTTP/1.1 503 x\r\ncontent-length: 55\r\n\r\n'))
    const { url } = await startVendor()
    const { chat } = await startGateway({
      guard: { url: one },
      vendors: { two: { protocol: 'openai', url } },
      routes: [{ vendor: 'openai', fallbacks: [{ vendor: 'two' }] }],
    })
    expect((await chat()).headers.get('spillway-vendor')).toBe('two')
  })
})

describe('request paths', () => {
  it('paths with parent segments are refused', async () => {
    const running = await startGateway({
      vendors: { weather: { protocol: 'http', url: 'http://127.0.0.1:9/base' } },
      routes: [{ path: '/weather/*', vendor: 'weather', stripPrefix: '/weather' }],
    })
    for (const path of [
      '/weather/../../secret',
      '/weather/%2e%2e/x',
      '/weather/..%2fx',
      '/weather/.',
    ]) {
      const socket = connect(Number(new URL(running.url).port), '127.0.0.1')
      socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)
      const { chunks } = await readAll(socket)
      expect(Buffer.concat(chunks as Buffer[]).toString(), path).toMatch(/^HTTP\/1.1 400/)
    }
  })
})

describe("client's own key", () => {
  it("the client's key is sent to its own vendor and not to a fallback", async () => {
    const two = await startVendor()
    const { chat, vendor } = await startGateway(
      {
        vendors: { two: { protocol: 'openai', url: two.url } },
        routes: [{ vendor: 'openai', fallbacks: [{ vendor: 'two' }] }],
      },
      { knobs: { status: 500 } },
    )
    await chat({}, { headers: { authorization: 'Bearer theirs' } })
    expect(vendor.calls[0]?.headers.authorization).toBe('Bearer theirs')
    expect(two.vendor.counts.arrived).toBe(1)
    expect(JSON.stringify(two.vendor.calls)).not.toContain('theirs')
  })
})

describe('a body nested 3,000 levels deep', () => {
  it('a body nested 3,000 levels deep is answered with 400 and is no failure of the gateway', async () => {
    const { chat, failures } = await startGateway()
    const deep = JSON.parse(`${'['.repeat(3_000)}${']'.repeat(3_000)}`)
    expect((await chat({ messages: deep })).status).toBe(400)
    expect(failures).toEqual([])
  })
})

describe('event stream frames', () => {
  it('event streams are recognised in any spelling, and compressed ones are left alone', async () => {
    const { gzipSync } = await import('node:zlib')
    const zipped = gzipSync('data: 1\n\ndata: 2\n\n')
    const vendor = await serve((request, response) => {
      const type = { 'content-type': 'Text/Event-Stream; charset=utf-8' }
      if (request.url === '/v1/zipped') {
        response.writeHead(200, { ...type, 'content-encoding': 'gzip' }).end(zipped)
      } else {
        response.writeHead(200, type).write('data: {"half": ')
        setTimeout(() => response.destroy(), 50)
      }
    })
    const { url } = await startGateway({
      guard: { url: vendor },
      routes: [{ path: '/v1/*', vendor: 'openai' }],
    })
    expect(await (await fetch(`${url}/v1/zipped`)).text()).toBe('data: 1\n\ndata: 2\n\n')
    const answer = await fetch(`${url}/v1/plain`)
    const { chunks } = answer.ok ? await readAll(answer.body!) : { chunks: [] }
    expect(Buffer.concat(chunks).toString()).not.toContain('half')
  })
})
