// test-group: sockets

/** The gateway between two services: remaining time and attempts travel through it, and retries do not multiply. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { once } from 'node:events'
import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type ServerResponse,
} from 'node:http'
import { createSpillway } from 'spillway'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { startGateway } from './gateway-kit.js'
import { startHttpVendor } from './http1-kit.js'

const RETRY = { attempts: 3, baseMs: 1, budget: 1 }

async function start(
  answer: (headers: IncomingHttpHeaders, response: ServerResponse) => void,
  options: object = {},
) {
  const vendor = await startHttpVendor(({ headers }, response) => answer(headers, response))
  const { url, gateway } = await startGateway({
    vendors: { inner: { protocol: 'http', url: vendor.url, retry: RETRY, ...options } },
    routes: [{ path: '/inner*', vendor: 'inner' }],
  })
  const guard = () => gateway.spillway.snapshot().guards.find(({ name }) => name === 'inner')
  return { vendor, url: `${url}/inner`, guard }
}

const DOWN = (_: unknown, response: ServerResponse) => void response.writeHead(503).end('down')

describe('retries of nested services', () => {
  it('a service, the gateway and a failing service behind it make 3 calls in all', async () => {
    const { vendor, url } = await start(DOWN)
    const spillway = createSpillway()
    onTestFinished(() => spillway.close())
    const outer = spillway.guard('outer', { retry: RETRY, fetch: { hops: true } })
    const answer = await outer.fetch(url)
    expect(answer.status).toBe(503)
    expect(answer.headers.get('spillway-retried')).toBe('1')
    expect(vendor.requests).toHaveLength(3)
    expect(vendor.requests.map(({ headers }) => headers['spillway-attempt'])).toEqual([
      '1',
      '2',
      '3',
    ])
  })

  it('a request that is already a retry is sent once, as a retry', async () => {
    const { vendor, url } = await start(DOWN)
    const answer = await fetch(url, { headers: { 'spillway-attempt': '2' } })
    expect(answer.status).toBe(503)
    expect(vendor.requests.map(({ headers }) => headers['spillway-attempt'])).toEqual(['2'])
  })

  it.each(['0', '-1', '1.5', 'two', '', '2, 3'])(
    'a request with the invalid spillway-attempt "%s" is retried as any other',
    async (attempt) => {
      const { vendor, url } = await start(DOWN)
      await fetch(url, { headers: { 'spillway-attempt': attempt } })
      const sent = vendor.requests.map(({ headers }) => headers['spillway-attempt'])
      expect(sent).toEqual(['1', '2', '3'])
    },
  )

  it('no header of a client turns on async contexts, which would slow down all later requests', async () => {
    const { vendor, url } = await start(DOWN)
    const run = vi.spyOn(AsyncLocalStorage.prototype, 'run')
    const enterWith = vi.spyOn(AsyncLocalStorage.prototype, 'enterWith')
    onTestFinished(() => void vi.restoreAllMocks())
    const headers = {
      'spillway-attempt': '2',
      'spillway-deadline-ms': '10000',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    }
    const clientRequest = request(url, { headers }).end()
    const [answer] = (await once(clientRequest, 'response')) as [IncomingMessage]
    answer.resume()
    expect(answer.statusCode).toBe(503)
    expect(vendor.requests.map(({ headers }) => headers['spillway-attempt'])).toEqual(['2'])
    expect([run.mock.calls.length, enterWith.mock.calls.length]).toEqual([0, 0])
  })

  it.each([
    ['spillway-retried', '1'],
    ['x-should-retry', 'false'],
  ])('an answer with %s: %s is not retried', async (name, value) => {
    const { vendor, url } = await start((_, response) => {
      response.writeHead(503, { [name]: value }).end('down')
    })
    const answer = await fetch(url)
    expect(answer.status).toBe(503)
    expect(answer.headers.get('x-should-retry')).toBe('false')
    expect(vendor.requests).toHaveLength(1)
  })

  it('an answer that was retried behind the gateway is final, although the gateway does not retry', async () => {
    let retried = true
    const { url } = await start(
      (_, response) => {
        response.writeHead(503, retried ? { 'spillway-retried': '1' } : {}).end('down')
      },
      { retry: undefined },
    )
    expect((await fetch(url)).headers.get('x-should-retry')).toBe('false')
    retried = false
    expect((await fetch(url)).headers.get('x-should-retry')).toBeNull()
  })

  it('a successful answer does not report a retry', async () => {
    const { url } = await start((_, response) => void response.end('fine'))
    const answer = await fetch(url)
    expect(answer.headers.get('spillway-retried')).toBeNull()
  })
})

describe('remaining time', () => {
  it('the vendor gets the time that the client has left, without a reserve', async () => {
    const { vendor, url } = await start((_, response) => void response.end('fine'))
    await fetch(url, { headers: { 'spillway-deadline-ms': '10000' } })
    const leftMs = Number(vendor.requests[0]?.headers['spillway-deadline-ms'])
    expect(leftMs).toBeGreaterThan(0)
    expect(leftMs).toBeLessThanOrEqual(9_000)
  })

  it('a request with 100 ms or less left is refused with DEADLINE_EXCEEDED and not sent', async () => {
    const { vendor, url } = await start((_, response) => void response.end('fine'))
    const answer = await fetch(url, { headers: { 'spillway-deadline-ms': '100' } })
    expect(answer.status).toBe(504)
    expect(answer.headers.get('spillway-decision')).toContain('DEADLINE_EXCEEDED')
    expect(vendor.requests).toHaveLength(0)
  })

  it('a request with too little time left takes no permit of its vendor', async () => {
    const { url, guard } = await start((_, response) => void response.end('fine'), {
      limits: [{ limit: 5, windowMs: '1m' }],
    })
    await fetch(url, { headers: { 'spillway-deadline-ms': '100' } })
    expect(guard()).toMatchObject({ attempts: 0, refused: [{ code: 'DEADLINE_EXCEEDED' }] })
  })

  it('a vendor with hops: false gets neither time nor attempt', async () => {
    const { vendor, url } = await start((_, response) => void response.end('fine'), { hops: false })
    await fetch(url, { headers: { 'spillway-deadline-ms': '10000', 'spillway-attempt': '2' } })
    const names = Object.keys(vendor.requests[0]?.headers ?? {})
    expect(names.filter((name) => name.startsWith('spillway-'))).toEqual([])
  })
})
