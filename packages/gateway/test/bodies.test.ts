// test-group: io

/** Request bodies are kept for another attempt up to a size and streamed once beyond it. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startGateway } from './gateway-kit.js'

/** A service that reports what it received and fails `failures` times. */
async function startEcho(failures = 0) {
  let left = failures
  let asked = 0
  const server = createServer(async (request, response) => {
    asked++
    let bytes = 0
    try {
      for await (const chunk of request) bytes += (chunk as Buffer).length
    } catch {
      return
    }
    const fails = left-- > 0
    response.writeHead(fails ? 503 : 200, { 'content-type': 'application/json' })
    const { method, url, headers } = request
    response.end(JSON.stringify({ method, url, bytes, headers }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close().closeAllConnections())
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, asked: () => asked }
}

async function startWith(
  failures: number,
  body: object = { keepBytes: '10kb', maxBytes: '100kb' },
) {
  const echo = await startEcho(failures)
  const running = await startGateway({
    vendors: {
      echo: {
        protocol: 'http',
        url: `${echo.url}/base`,
        retry: { attempts: 3, budget: 1, baseMs: 1 },
      },
    },
    routes: [{ path: '/echo*', vendor: 'echo', stripPrefix: '/echo' }],
    body,
  })
  const send = (bytes: number, init: RequestInit = {}) =>
    fetch(`${running.url}/echo/x?y=1`, { method: 'PUT', body: Buffer.alloc(bytes, 'x'), ...init })
  return { ...running, send, asked: echo.asked }
}

describe('request bodies', () => {
  it('a small body is sent again on a retry', async () => {
    const { send, asked } = await startWith(2)
    const answer = await send(5_000)
    expect(await answer.json()).toMatchObject({ method: 'PUT', url: '/base/x?y=1', bytes: 5_000 })
    expect(asked()).toBe(3)
  })

  it('a large body is streamed and sent only once', async () => {
    const { send, asked } = await startWith(1)
    const answer = await send(60_000)
    expect(answer.status).toBe(503)
    expect(await answer.json()).toMatchObject({ bytes: 60_000 })
    expect(asked()).toBe(1)
  })

  it('a body above maxBytes is refused, with or without Content-Length', async () => {
    const { send, asked } = await startWith(0)
    expect((await send(200_000)).status).toBe(413)
    expect(asked()).toBe(0)
    async function* unannounced() {
      for (let i = 0; i < 20; i++) yield Buffer.alloc(10_000, 'x')
    }
    const stream = ReadableStream.from(unannounced())
    const answer = await send(0, { body: stream, duplex: 'half' } as RequestInit).catch(
      () => undefined,
    )
    if (answer !== undefined) expect(answer.status).toBe(413)
  })

  it('a body of a POST is sent once unless it has an idempotency key', async () => {
    const { send, asked } = await startWith(1)
    expect((await send(10, { method: 'POST' })).status).toBe(503)
    expect(asked()).toBe(1)
    const again = await startWith(1)
    const keyed = { method: 'POST', headers: { 'idempotency-key': 'k' } }
    expect((await again.send(10, keyed)).status).toBe(200)
    expect(again.asked()).toBe(2)
  })

  it('a request without a body is passed on', async () => {
    const { url } = await startWith(0)
    const answer = await fetch(`${url}/echo/x`)
    expect(await answer.json()).toMatchObject({ method: 'GET', bytes: 0 })
  })
})

describe('hop-by-hop headers', () => {
  it('hop-by-hop headers are not passed on', async () => {
    const { url } = await startWith(0)
    const answer = await fetch(`${url}/echo/x`, {
      headers: { cookie: 'a=b', 'x-own': '1', 'accept-encoding': 'gzip', te: 'trailers' },
    })
    const { headers } = (await answer.json()) as { headers: Record<string, string> }
    expect(headers['x-own']).toBe('1')
    for (const name of ['cookie', 'te', 'accept-encoding']) expect(headers).not.toHaveProperty(name)
  })
})
