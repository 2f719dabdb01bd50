// test-group: sockets, slow

/** The vendors' SDKs against the gateway, for every knob, streamed or not. */
import type { MockKnobs } from '@spillway/mock-vendor'
import { describe, expect, it } from 'vitest'
import { type ErrorName, SDKS, type Sdk } from '../../spillway/test/streams/sdk-clients.js'
import { errorOf, until } from '../../spillway/test/streams/stream-kit.js'
import { expectIdle, startGateway } from './gateway-kit.js'

const TOKENS = 6
const TEXT = '0 1 2 3 4 5'
const RETRY = { attempts: 3, budget: 1, baseMs: 1 }

interface Case {
  knob: string
  knobs: MockKnobs
  guard?: object
  result: { text: string } | { error: ErrorName; status?: number; code?: string }
  /** The result of the streamed request if it differs. */
  streamed?: Case['result']
  attempts: number
}

const SHORT = { timeout: { callMs: 500 } }
const timedOut: Case['result'] = { error: 'InternalServerError', status: 504, code: 'CALL_TIMEOUT' }
const brokenOff: Case['result'] = { error: 'APIError', code: 'CALL_TIMEOUT' }
const cut: Case['result'] = { error: 'APIConnectionError' }

const CASES: Case[] = [
  { knob: 'none', knobs: {}, result: { text: TEXT }, attempts: 1 },
  { knob: 'latency', knobs: { latencyMs: 20, tokenMs: 2 }, result: { text: TEXT }, attempts: 1 },
  {
    knob: 'latency beyond callMs',
    knobs: { latencyMs: 5_000 },
    guard: SHORT,
    result: timedOut,
    attempts: 1,
  },
  {
    knob: 'a slow start',
    knobs: { slowStart: { extraMs: 5_000, overMs: 60_000 } },
    guard: SHORT,
    result: timedOut,
    attempts: 1,
  },
  { knob: 'no answer', knobs: { neverAnswer: true }, guard: SHORT, result: timedOut, attempts: 1 },
  {
    knob: '400',
    knobs: { status: 400 },
    guard: { retry: RETRY },
    result: { error: 'BadRequestError', status: 400 },
    attempts: 1,
  },
  {
    knob: '401',
    knobs: { status: 401 },
    guard: { retry: RETRY },
    result: { error: 'AuthenticationError', status: 401 },
    attempts: 1,
  },
  {
    knob: '429',
    knobs: { status: 429 },
    result: { error: 'RateLimitError', status: 429 },
    attempts: 1,
  },
  {
    knob: '429 with Retry-After',
    knobs: { status: 429, retryAfterMs: 3_000 },
    result: { error: 'RateLimitError', status: 429 },
    attempts: 1,
  },
  {
    knob: '500',
    knobs: { status: 500 },
    guard: { retry: RETRY },
    result: { error: 'InternalServerError', status: 500 },
    attempts: 3,
  },
  {
    knob: '503',
    knobs: { status: 503 },
    guard: { retry: RETRY },
    result: { error: 'InternalServerError', status: 503 },
    attempts: 3,
  },
  {
    knob: '529',
    knobs: { status: 529 },
    guard: { retry: RETRY },
    result: { error: 'InternalServerError', status: 529 },
    attempts: 3,
  },
  {
    knob: 'silence before the first token',
    knobs: { stallBefore: true },
    guard: { timeout: { firstByteMs: 150 } },
    result: timedOut,
    attempts: 1,
  },
  {
    knob: 'silence in the middle',
    knobs: { stallAfter: 3, tokenMs: 2 },
    guard: { timeout: { idleMs: 150 } },
    // Half of a non-streamed answer has been sent by then, so only the connection can be cut.
    result: cut,
    streamed: brokenOff,
    attempts: 1,
  },
  {
    knob: 'a silence below idleMs',
    knobs: { stallAfter: 3, stallMs: 30 },
    guard: { timeout: { idleMs: 5_000 } },
    result: { text: TEXT },
    attempts: 1,
  },
  {
    knob: 'a cut',
    knobs: { cutAfter: 4, tokenMs: 2 },
    guard: { retry: RETRY },
    result: cut,
    streamed: { error: 'APIError', code: 'VENDOR_ERROR' },
    attempts: 1,
  },
  {
    knob: 'an error event',
    knobs: { errorAfter: 3, tokenMs: 2 },
    result: { error: 'InternalServerError', status: 500 },
    streamed: { error: 'APIError' },
    attempts: 1,
  },
]

function start(knobs: MockKnobs, guard: object = {}) {
  return startGateway({ guard }, { knobs: { tokens: TOKENS, ...knobs } })
}

function nameOf(result: Case['result']): string {
  return 'text' in result ? 'the answer' : result.error
}

async function expectResult(
  client: ReturnType<Sdk['create']>,
  call: Promise<string>,
  result: Case['result'],
) {
  if ('text' in result) return expect(await call).toBe(result.text)
  const error = (await errorOf(call)) as Error & { status?: number }
  if (result.error === 'APIConnectionError') return expect(error).toBeInstanceOf(Error)
  expect(error).toBeInstanceOf(client.errors[result.error])
  if (result.status !== undefined) expect(error.status).toBe(result.status)
  if (result.code !== undefined) expect(JSON.stringify(error)).toContain(result.code)
}

describe.each(SDKS)('$name SDK through the gateway', (sdk) => {
  for (const { knob, knobs, guard, result, streamed, attempts } of CASES) {
    for (const way of ['in one piece', 'streamed'] as const) {
      const expected = way === 'streamed' ? (streamed ?? result) : result
      it(`${knob}, ${way}: SDK gets ${nameOf(expected)} after ${attempts} attempts`, async () => {
        const running = await start(knobs, guard)
        const client = sdk.create(running.url)
        await expectResult(client, way === 'streamed' ? client.stream() : client.ask(), expected)
        await expectIdle(running)
        await until('it is recorded', () => running.records.length > 0)
        expect(running.records.map((record) => record.attempts)).toEqual([attempts])
        // On a busy machine a timeout may pass before the request arrives.
        expect(running.vendor.counts.arrived).toBeLessThanOrEqual(attempts)
      })
    }
  }

  it('garbage is passed on unchanged', async () => {
    const running = await start({ garbage: 'json' })
    const client = sdk.create(running.url)
    expect(await errorOf(client.ask())).toBeInstanceOf(SyntaxError)
    expect(await errorOf(client.stream())).toBeInstanceOf(SyntaxError)
    await expectIdle(running)
  })

  it('merged events without an end are an error and not half an answer', async () => {
    const running = await start({ garbage: 'sse' })
    const client = sdk.create(running.url)
    expect(await errorOf(client.stream())).toBeInstanceOf(client.errors.APIError)
    await expectIdle(running)
  })

  it('SDK does not notice a vendor that recovers during retries', async () => {
    const running = await start(
      { status: 503 },
      { retry: { ...RETRY, baseMs: 100, jitter: 'none' } },
    )
    const answer = sdk.create(running.url).stream()
    await until('it was asked', () => running.vendor.counts.arrived >= 1)
    running.vendor.set({ errorRate: 0 })
    expect(await answer).toBe(TEXT)
    const keys = new Set(running.vendor.calls.map(({ idempotencyKey }) => idempotencyKey))
    expect([...keys]).toEqual([expect.stringMatching(/./)])
  })

  it('an open circuit is a 503 that the SDK understands, without a vendor call', async () => {
    const running = await start(
      { status: 500 },
      { breaker: { consecutiveFailures: 1, openMs: '60s' } },
    )
    const client = sdk.create(running.url)
    await errorOf(client.ask())
    const error = await errorOf(client.ask())
    expect(error).toBeInstanceOf(client.errors.InternalServerError)
    expect(JSON.stringify(error)).toContain('CIRCUIT_OPEN')
    expect(running.vendor.counts.arrived).toBe(1)
  })

  it('a user over the limit gets a RateLimitError with the time to wait', async () => {
    const userLimits = [{ per: 'user', limit: 1, windowMs: '1m' }]
    const running = await start({}, { userLimits })
    const client = sdk.create(running.url)
    await client.ask()
    const error = (await errorOf(client.ask())) as Error & { headers: Headers }
    expect(error).toBeInstanceOf(client.errors.RateLimitError)
    expect(Number(error.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(running.vendor.counts.arrived).toBe(1)
  })

  it('an unknown key is an AuthenticationError', async () => {
    const callers = [{ key: 'env:KEY', user: 'ann' }]
    const running = await startGateway({ callers }, { knobs: { tokens: TOKENS } }, { KEY: 'right' })
    const wrong = sdk.create(running.url, undefined, 'wrong')
    expect(await errorOf(wrong.ask())).toBeInstanceOf(wrong.errors.AuthenticationError)
    expect(await sdk.create(running.url, undefined, 'right').ask()).toBe(TEXT)
    expect(running.vendor.counts.arrived).toBe(1)
  })

  it("a client that disconnects cancels the vendor's request at once", async () => {
    const running = await start({ stallAfter: 3, tokenMs: 2 })
    const leave = new AbortController()
    await sdk.create(running.url).stream({ signal: leave.signal, onToken: () => leave.abort() })
    running.vendor.set({ neverAnswer: true })
    const early = new AbortController()
    const call = errorOf(sdk.create(running.url).ask({ signal: early.signal }))
    await until('it arrived', () => running.vendor.counts.arrived === 2)
    early.abort()
    await call
    await expectIdle(running)
    expect(running.vendor.calls.map(({ end }) => end)).toEqual(['cancelled', 'cancelled'])
    const { outcomes } = running.gateway.spillway.snapshot().guards.find(({ calls }) => calls > 0)!
    expect(outcomes).toMatchObject({ failure: 0, ignored: 2 })
  })
})
