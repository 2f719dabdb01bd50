// test-group: sockets

/** Aborting a guarded fetch reaches the vendor, wherever its request is at that moment. */
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { errorOf, pauseMs, startGuard, until } from './stream-kit.js'

type Answering = Parameters<typeof createServer>[1]

async function serve(answer: Answering): Promise<{ url: string; seen: IncomingMessage[] }> {
  const seen: IncomingMessage[] = []
  const server: Server = createServer((request, response) => {
    seen.push(request)
    answer?.(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
}

const isGone = (request: IncomingMessage | undefined) => request?.destroyed === true

/** Node's dispatcher with one connection, so the second request waits for the first. */
function singleConnection(): object {
  const global = (globalThis as Record<symbol, object>)[Symbol.for('undici.globalDispatcher.1')]
  const { constructor: Agent } = global as {
    constructor: new (options: object) => { destroy(): void }
  }
  const agent = new Agent({ connections: 1 })
  onTestFinished(() => agent.destroy())
  return agent
}

describe('aborted request', () => {
  it('an abort reaches the vendor and frees the slot', async () => {
    const { url, seen } = await serve((request, response) => {
      if (request.url === '/quick') response.end('ok')
    })
    const guard = startGuard({ concurrency: { limit: 1 } })
    expect(await (await guard.fetch(`${url}/quick`)).text()).toBe('ok')
    const leave = new AbortController()
    const left = guard.fetch(`${url}/slow`, { signal: leave.signal })
    await until('it is at the vendor', () => seen.length === 2)
    leave.abort(new Error('enough'))
    expect(await errorOf(left)).toMatchObject({ message: 'enough' })
    await until('the vendor notices', () => isGone(seen[1]))
    expect(guard.snapshot().active).toBe(0)
  })

  it('a request aborted while waiting for a connection is never sent and holds no slot', async () => {
    const release: (() => void)[] = []
    const { url, seen } = await serve((_, response) => {
      release.push(() => response.end('ok'))
    })
    const guard = startGuard({ concurrency: { limit: 2 } })
    await fetch(`data:,`)
    const init = { dispatcher: singleConnection() } as object
    const first = guard.fetch(`${url}/first`, init)
    await until('the first has the connection', () => seen.length === 1)
    const leave = new AbortController()
    const second = guard.fetch(`${url}/second`, { ...init, signal: leave.signal })
    await pauseMs(20)
    leave.abort(new Error('enough'))
    expect(await errorOf(second)).toMatchObject({ message: 'enough' })
    await until('its slot is free', () => guard.snapshot().active === 1)
    release[0]?.()
    expect(await (await first).text()).toBe('ok')
    const third = guard.fetch(`${url}/third`, init)
    await until('the third came', () => seen.length === 2)
    release[1]?.()
    await (await third).text()
    expect(seen.map((request) => request.url)).toEqual(['/first', '/third'])
  })

  it('an abort after a redirect reaches the final server', async () => {
    const { url, seen } = await serve((request, response) => {
      if (request.url === '/from') response.writeHead(302, { location: '/to' }).end()
    })
    const guard = startGuard({})
    const leave = new AbortController()
    const left = guard.fetch(`${url}/from`, { signal: leave.signal })
    await until('it was led on', () => seen.length === 2)
    leave.abort(new Error('enough'))
    expect(await errorOf(left)).toMatchObject({ message: 'enough' })
    await until('the vendor notices', () => isGone(seen[1]))
  })

  it('an idle timeout during a body reaches the vendor, and the reader gets the reason', async () => {
    const { url, seen } = await serve((_, response) => {
      response.writeHead(200)
      response.write('begun')
    })
    const guard = startGuard({ timeout: { callMs: 5_000, idleMs: 100 } })
    const response = await guard.fetch(url)
    expect(await errorOf(response.text())).toMatchObject({
      code: 'CALL_TIMEOUT',
      details: { kind: 'idle' },
    })
    await until('the vendor notices', () => isGone(seen[0]))
  })
})

describe('other kinds of fetch', () => {
  it('a fetch that the application supplies gets a signal every time', async () => {
    const signals: unknown[] = []
    const guard = startGuard({
      timeout: { callMs: 50 },
      fetch: {
        fetch: (_, init) => {
          signals.push(init?.signal)
          return new Promise((_, reject) => {
            init?.signal?.addEventListener('abort', () => reject(init.signal?.reason))
          })
        },
      },
    })
    for (let each = 0; each < 2; each++) {
      expect(await errorOf(guard.fetch('http://vendor.test/'))).toMatchObject({
        code: 'CALL_TIMEOUT',
      })
    }
    expect(signals).toMatchObject([{ aborted: true }, { aborted: true }])
  })

  it('a Request object created elsewhere gets a signal', async () => {
    const { url, seen } = await serve(() => {})
    const guard = startGuard({ timeout: { callMs: 100 } })
    const error = await errorOf(guard.fetch(new Request(url)))
    expect(error).toMatchObject({ code: 'CALL_TIMEOUT' })
    await until('the vendor notices', () => isGone(seen[0]))
  })
})
