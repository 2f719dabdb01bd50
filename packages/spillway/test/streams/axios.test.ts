// test-group: sockets

import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import axios, { isAxiosError } from 'axios'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { spillwayAxios } from '../../src/guard/fetch/axios.js'
import { createSpillway, type GuardOptions, type RunOptions, refusalOf } from '../../src/index.js'

type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void

let answer: Answer
let requests: { method: string; body: string; headers: IncomingMessage['headers'] }[] = []
const server = createServer(async (request, response) => {
  let body = ''
  for await (const chunk of request) body += chunk
  requests.push({ method: request.method ?? '', body, headers: request.headers })
  answer(request, response, body)
})
let baseURL = ''

beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  baseURL = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

let spillway = createSpillway()
afterEach(async () => {
  await spillway.close({ graceMs: 0 })
  spillway = createSpillway()
  requests = []
})

function start(options: GuardOptions = {}, call?: RunOptions) {
  const guard = spillway.guard('vendor', { timeout: { callMs: '20s' }, ...options })
  const client = axios.create({ baseURL, ...spillwayAxios(axios, guard, call) })
  return { guard, client }
}

const json: Answer = (_, response) => {
  response.setHeader('content-type', 'application/json')
  response.end('{"ok":true}')
}
const failing: Answer = (_, response) => {
  response.statusCode = 503
  response.end()
}
const retry = { attempts: 2, baseMs: 1, budget: 1 }

describe('axios client with a guard', () => {
  it('an axios request passes the guard and gets the usual response', async () => {
    answer = json
    const { guard, client } = start()
    const response = await client.post('/items?a=1', { b: 2 }, { headers: { 'x-own': '3' } })
    expect([response.status, response.data]).toEqual([200, { ok: true }])
    expect(response.config).toMatchObject({ baseURL, url: '/items?a=1' })
    expect(requests[0]).toMatchObject({
      body: '{"b":2}',
      headers: { 'x-own': '3', 'content-type': 'application/json' },
    })
    expect(guard.snapshot().outcomes.success).toBe(1)
  })

  it('axios requests are repeated by method, body and idempotency key', async () => {
    answer = failing
    const { client } = start({ retry })
    const key = { headers: { 'idempotency-key': 'order-17' } }
    const sent: number[] = []
    for (const ask of [
      () => client.get('/'),
      () => client.put('/', { a: 1 }),
      () => client.post('/', { a: 1 }),
      () => client.post('/', { a: 1 }, key),
      () => client.post('/', new ReadableStream({ start: (each) => each.close() }), key),
    ]) {
      requests = []
      const error = await ask().catch((each: unknown) => each)
      expect(isAxiosError(error) && error.response?.status).toBe(503)
      sent.push(requests.length)
    }
    expect(sent).toEqual([2, 2, 1, 2, 1])
    expect(requests.at(-1)?.headers['idempotency-key']).toBe('order-17')
  })

  it('a refusal is an AxiosError with code and status, and refusalOf finds the refusal', async () => {
    answer = failing
    const { client } = start({ breaker: { consecutiveFailures: 1, openMs: '1h' } })
    await client.get('/').catch(() => {})
    const error = await client.get('/').catch((each: unknown) => each)
    expect(isAxiosError(error)).toBe(true)
    expect(error).toMatchObject({ code: 'CIRCUIT_OPEN', status: 503, config: { url: '/' } })
    expect(refusalOf(error)).toMatchObject({ code: 'CIRCUIT_OPEN', stage: 'breaker' })
    expect(requests).toHaveLength(1)
  })

  it('lane and priority come from the client, or from the request', async () => {
    answer = json
    const { guard, client } = start({ limits: [{ limit: 9, windowMs: '1h' }] }, { lane: 'a' })
    await client.get('/')
    await client.get('/', { spillway: { lane: 'b' } })
    await client.get('/', { spillway: { lane: 'b', priority: 'high' } })
    const lanes = guard.snapshot().lanes.toSorted()
    expect(lanes).toEqual(['a', 'b'])
    await expect(client.get('/', { spillway: { lan: 'c' } as RunOptions })).rejects.toThrow(
      "did you mean 'lane'",
    )
  })

  it("an aborted signal aborts the vendor's request and is no failure", async () => {
    const leaving = new AbortController()
    const closed = new Promise<void>((resolve) => {
      answer = (_, response) => {
        response.once('close', resolve)
        leaving.abort()
      }
    })
    const { guard, client } = start()
    const error = await client.get('/', { signal: leaving.signal }).catch((each: unknown) => each)
    expect(axios.isCancel(error)).toBe(true)
    await closed
    expect(guard.snapshot().outcomes).toMatchObject({ failure: 0, ignored: 1 })
  })

  it('timeout of axios is the deadline of the whole call, and its end is a refusal', async () => {
    answer = () => {}
    const { guard, client } = start({ retry })
    const error = await client.get('/', { timeout: 30 }).catch((each: unknown) => each)
    expect(error).toMatchObject({ code: 'DEADLINE_EXCEEDED', status: 504, config: { timeout: 30 } })
    expect(requests).toHaveLength(1)
    expect(guard.snapshot().outcomes.failure).toBe(1)
  })

  it('a streamed axios response holds its slot until it was read', async () => {
    answer = (_, response) => {
      response.write('one ')
      response.end('two')
    }
    const { guard, client } = start({ concurrency: { limit: 1 } })
    const { data } = await client.get<ReadableStream<Uint8Array>>('/', { responseType: 'stream' })
    expect(guard.snapshot().active).toBe(1)
    let text = ''
    for await (const chunk of data) text += Buffer.from(chunk).toString()
    expect([text, guard.snapshot().active]).toEqual(['one two', 0])
  })

  it('an option of axios that fetch ignores is rejected with its name', async () => {
    const { client } = start()
    const proxy = { host: '127.0.0.1', port: 1 }
    const pending = client.get('/', { proxy, httpAgent: new Agent() })
    await expect(pending).rejects.toThrow(/axios\.httpAgent: .*\naxios\.proxy: /)
    expect(requests).toHaveLength(0)
  })
})
