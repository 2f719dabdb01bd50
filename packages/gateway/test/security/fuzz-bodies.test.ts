// test-group: sockets

/**
 * Random bodies, against an independent reference. The number of cases in this process is SPILLWAY_FUZZ_CASES
 * (default 4,000, with `npm run test:long` 40,000), a fiftieth of that goes through a gateway on each
 * listener; SPILLWAY_SEED is their seed.
 */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { isDeepStrictEqual } from 'node:util'
import { tokensOf } from 'spillway/internal'
import { describe, expect, it, onTestFinished } from 'vitest'
import { usualOrLong } from '../../../spillway/test/long-run.js'
import { PROTOCOLS } from '../../src/protocols/index.js'
import { withFields } from '../../src/request/body/rewrite-body.js'
import { type ParsedRequest, parseRequest } from '../../src/request/parse-request.js'
import { RequestError } from '../../src/response/errors.js'
import { type BodyCase, bodyCase, chunksOf, MODELS } from './body-cases.js'
import { type Expected, expectedOf, protocolOf } from './body-reference.js'
import { type Answered, clientOf, LISTENERS, startOn } from './listener-kit.js'
import { dice } from './mutate.js'

const CASES = Number(process.env.SPILLWAY_FUZZ_CASES ?? usualOrLong(1_500, 40_000))
const GATEWAY_CASES = Math.ceil(CASES / 50)
const SEED = Number(process.env.SPILLWAY_SEED ?? 1)
const LIMITS = { keepBytes: 4_096, maxBytes: 65_536 }

function headersOf({ contentType, contentEncoding }: BodyCase): Record<string, string> {
  return {
    ...(contentType !== undefined && { 'content-type': contentType.trim() }),
    ...(contentEncoding !== undefined && { 'content-encoding': contentEncoding }),
  }
}

/** The request as Node's parser provides it, chunked or not. */
function nodeRequest(one: BodyCase, isChunked: boolean): IncomingMessage {
  // An empty body always has a length: the reference does not cover empty chunked bodies.
  const framing =
    isChunked && one.bytes.length > 0
      ? { 'transfer-encoding': 'chunked' }
      : { 'content-length': String(one.bytes.length) }
  const stream = Readable.from(chunksOf(one), { objectMode: false })
  const headers = { ...headersOf(one), ...framing }
  return Object.assign(stream, { method: 'POST', headers }) as unknown as IncomingMessage
}

async function decide(
  one: BodyCase,
  request: IncomingMessage,
  contentDecides: boolean,
): Promise<ParsedRequest | RequestError> {
  try {
    return await parseRequest(request, {
      protocol: PROTOCOLS[protocolOf(one.path)],
      path: one.path,
      query: '',
      contentDecides,
      limits: LIMITS,
      onFault: () => {},
    })
  } catch (error) {
    if (error instanceof RequestError) return error
    throw error
  }
}

/** Everything that differs, in one object to compare. */
async function seen(decided: ParsedRequest | RequestError) {
  if (decided instanceof RequestError) return { status: decided.status }
  const { body, facts, json, isUnread } = decided
  const chunks: Buffer[] = []
  try {
    if (body.kind === 'held') chunks.push(body.bytes.toBuffer())
    else for await (const chunk of body.chunks) chunks.push(chunk)
  } catch (error) {
    return { status: (error as RequestError).status }
  }
  const bytes = Buffer.concat(chunks)
  if (isUnread) return { isUnread, bytes }
  if (json === undefined || body.kind !== 'held') return {}
  const replaced = withFields(body.bytes, json, { model: 'replaced' }).toBuffer()
  const { prompt, ...others } = facts
  return {
    facts: { ...others, promptTokens: tokensOf(prompt, 4) },
    json: JSON.parse(bytes.toString()),
    replaced: JSON.parse(replaced.toString()),
  }
}

function wanted({ status, isUnread, facts, json }: Expected, { bytes }: BodyCase): object {
  if (status !== undefined) return { status }
  if (isUnread === true) return { isUnread, bytes }
  return json === undefined ? {} : { facts, json, replaced: { ...json, model: 'replaced' } }
}

/** The case in short form for the failure message. */
function described(index: number, one: BodyCase): string {
  const bytes = one.bytes.toString('latin1').slice(0, 2_000)
  return JSON.stringify({ index, ...one, bytes })
}

describe('a body', () => {
  it(`a body is read as JSON.parse reads it or refused, in ${CASES} cases`, async () => {
    const random = dice(SEED)
    const tally = new Map<string, number>()
    for (let i = 0; i < CASES; i++) {
      const one = bodyCase(random)
      const contentDecides = random.below(2) === 0
      const expected = wanted(expectedOf(one, contentDecides, LIMITS.maxBytes), one)
      const request = nodeRequest(one, random.below(2) === 0)
      const found = await seen(await decide(one, request, contentDecides))
      if (!isDeepStrictEqual(found, expected)) expect(found, described(i, one)).toEqual(expected)
      const outcome =
        Object.keys(expected)[0] === 'status' ? JSON.stringify(expected) : Object.keys(expected)[0]
      tally.set(String(outcome), (tally.get(String(outcome)) ?? 0) + 1)
    }
    // Every kind of case must have occurred often enough.
    for (const kind of [
      '{"status":400}',
      '{"status":413}',
      '{"status":415}',
      'isUnread',
      'facts',
    ]) {
      expect(tally.get(kind), kind).toBeGreaterThan(CASES / 200)
    }
  })

  it.each(LISTENERS)(
    `a body sent to %s reaches the vendor as the gateway understood it or not at all, in ${GATEWAY_CASES} cases`,
    async (listener) => {
      const vendor = await startRecorder()
      const tokens = [{ unit: 'tokens', limit: 1e15, windowMs: '1m' }]
      const { url, records, failures } = await startOn(listener, {
        guard: { url: vendor.url, concurrency: { limit: 50 } },
        vendors: {
          counted: { protocol: 'openai', url: vendor.url, limits: tokens },
          claude: { protocol: 'anthropic', url: vendor.url, limits: tokens },
        },
        routes: [
          // Models that a route names have a lane from their first request on.
          { path: '/v1/messages', vendor: 'claude', models: MODELS },
          { path: '/v1/messages', vendor: 'claude' },
          { path: '/v1/*', vendor: 'openai', models: ['cheap-*'], model: 'replaced' },
          { path: '/v1/*', vendor: 'counted', models: ['limited-*', 'limited-1'] },
          { path: '/v1/*', vendor: 'openai', models: MODELS },
          { path: '/v1/*', vendor: 'openai' },
        ],
        body: LIMITS,
      })
      const client = clientOf(listener, url)
      const random = dice(SEED + 1 + LISTENERS.indexOf(listener))
      let admitted = 0
      for (let i = 0; i < GATEWAY_CASES; i++) {
        const one = bodyCase(random)
        const expected = expectedOf(one, true, LIMITS.maxBytes)
        const id = `case-${i}`
        const answer = await post(client, one, id, random.below(2) === 0)
        const received = vendor.received.get(id)
        const what = described(i, one)
        expect(answer.status, what).toBe(expected.status ?? 200)
        expect(received !== undefined, what).toBe(expected.status === undefined)
        if (received === undefined) continue
        admitted++
        const { json, facts, isUnread } = expected
        const record = records.find((each) => each.id === id)
        expect(record, what).toMatchObject({ streamed: facts?.streamed ?? false })
        if (isUnread === true) expect(received.body, what).toEqual(one.bytes)
        if (json === undefined || facts === undefined) continue
        const { model = '' } = facts
        expect(received.headers['content-encoding'], what).toBeUndefined()
        expect(received.headers['content-length'], what).toBe(String(received.body.length))
        const isReplaced = model.startsWith('cheap-') && one.path !== '/v1/messages'
        const { stream_options: options, ...sent } = JSON.parse(received.body.toString())
        const { stream_options: _, ...given } = json
        expect(sent, what).toEqual(isReplaced ? { ...given, model: 'replaced' } : given)
        // Usage is requested where tokens are counted, and nowhere else.
        const isCounted = model.startsWith('limited-') && one.path === '/v1/chat/completions'
        if (isCounted && facts.streamed)
          expect(options, what).toMatchObject({ include_usage: true })
        else expect(options, what).toEqual(json.stream_options)
        const expectedVendor =
          one.path === '/v1/messages'
            ? 'claude'
            : model.startsWith('limited-')
              ? 'counted'
              : 'openai'
        expect(answer.headers['spillway-vendor'], what).toBe(expectedVendor)
        if (/^[\w-]{1,40}$/.test(model)) {
          // A model that the configuration does not name has a lane once the vendor has answered for it.
          const lanes = isReplaced ? ['replaced'] : [model, '(other)']
          const [, lane] = /lane="([^"]*)"/.exec(String(answer.headers['spillway-decision'])) ?? []
          expect(lane, what).toBeOneOf(lanes)
        }
      }
      expect(failures).toEqual([])
      expect(admitted).toBeGreaterThan(GATEWAY_CASES / 5)
    },
  )
})

interface Received {
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

/** A vendor that records what it receives and answers as requested. */
async function startRecorder() {
  const received = new Map<string, Received>()
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { headers } = request
    const body = Buffer.concat(chunks)
    received.set(String(headers['x-case']), { headers, body })
    if (wantsStream(body)) {
      response.setHeader('content-type', 'text/event-stream')
      response.end('event: error\ndata: {"type":"error"}\n\n')
    } else response.setHeader('content-type', 'application/json').end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close().closeAllConnections())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received }
}

function wantsStream(body: Buffer): boolean {
  try {
    return JSON.parse(body.toString()).stream === true
  } catch {
    return false
  }
}

function post(
  client: ReturnType<typeof clientOf>,
  one: BodyCase,
  id: string,
  isChunked: boolean,
): Promise<Answered> {
  const hasLength = !isChunked || one.bytes.length === 0
  const headers = {
    ...headersOf(one),
    'x-request-id': id,
    'x-case': id,
    ...(hasLength && { 'content-length': one.bytes.length }),
  }
  return client({ path: one.path, headers, chunks: chunksOf(one) })
}
