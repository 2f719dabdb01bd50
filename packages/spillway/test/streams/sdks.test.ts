// test-group: sockets

import type { MockKnobs, MockVendor } from '@spillway/mock-vendor'
/** Real SDKs through `guard.fetch` against the mock vendor, for every knob, streamed or not. */
import { createSpillway, type GuardOptions } from 'spillway'
import { createVirtualClock } from 'spillway/testing'
import { describe, expect } from 'vitest'
import type { Fetch } from '../../src/guard/fetch/fetch.js'
import { it } from '../concurrent-tests.js'
import { startVendor } from '../mock-client.js'
import { type ErrorName, SDKS, type Sdk, type SdkClient } from './sdk-clients.js'
import { codeOf, endsOf, errorOf, outcomesOf, pauseMs, startGuard, until } from './stream-kit.js'

const TOKENS = 6
const TEXT = '0 1 2 3 4 5'

/** The expected result of a knob, streamed or not. */
interface Case {
  knob: string
  knobs: MockKnobs
  guard?: GuardOptions
  /** The silence begins after the head of the answer. */
  inBody?: boolean
  result: Result
}

/** `code`: the body broke off, and the SDKs pass on the error. */
type Result = { error: ErrorName; status?: number } | { code: string } | { text: string }

const SHORT = { timeout: { callMs: 150 } }

const CASES: Case[] = [
  { knob: 'none', knobs: {}, result: { text: TEXT } },
  { knob: 'latency', knobs: { latencyMs: 20, tokenMs: 2 }, result: { text: TEXT } },
  { knob: 'latency beyond callMs', knobs: { latencyMs: 5_000 }, guard: SHORT, result: timedOut() },
  {
    knob: 'a slow start',
    knobs: { slowStart: { extraMs: 5_000, overMs: 60_000 } },
    guard: SHORT,
    result: timedOut(),
  },
  { knob: 'no answer', knobs: { neverAnswer: true }, guard: SHORT, result: timedOut() },
  { knob: '400', knobs: { status: 400 }, result: { error: 'BadRequestError', status: 400 } },
  { knob: '401', knobs: { status: 401 }, result: { error: 'AuthenticationError', status: 401 } },
  { knob: '429', knobs: { status: 429 }, result: { error: 'RateLimitError', status: 429 } },
  {
    knob: '429 with Retry-After',
    knobs: { status: 429, retryAfterMs: 3_000 },
    result: { error: 'RateLimitError', status: 429 },
  },
  { knob: '500', knobs: { status: 500 }, result: { error: 'InternalServerError', status: 500 } },
  { knob: '503', knobs: { status: 503 }, result: { error: 'InternalServerError', status: 503 } },
  { knob: '529', knobs: { status: 529 }, result: { error: 'InternalServerError', status: 529 } },
  {
    knob: 'silence before the first token',
    knobs: { stallBefore: true },
    guard: { timeout: { firstByteMs: 1_500 } },
    inBody: true,
    result: { code: 'CALL_TIMEOUT' },
  },
  {
    knob: 'silence in the middle',
    knobs: { stallAfter: 3, tokenMs: 2 },
    guard: { timeout: { idleMs: 150 } },
    inBody: true,
    result: { code: 'CALL_TIMEOUT' },
  },
  {
    knob: 'a silence below idleMs',
    knobs: { stallAfter: 3, stallMs: 30 },
    guard: { timeout: { idleMs: 5_000 } },
    result: { text: TEXT },
  },
]

function timedOut(): Result {
  return { error: 'APIConnectionTimeoutError' }
}

function nameOf(result: Result): string {
  if ('text' in result) return 'the answer'
  return 'code' in result ? result.code : result.error
}

async function start(sdk: Sdk, knobs: MockKnobs, options: GuardOptions = {}) {
  const { vendor, url } = await startVendor({ knobs: { tokens: TOKENS, ...knobs } })
  const guard = startGuard({ concurrency: { limit: 10 }, ...options })
  return { vendor, guard, client: sdk.create(url, guard.fetch) }
}

/**
 * The error of a call that times out in the body of its answer. The guard's time stands still until the head has
 * arrived, however long that takes.
 */
async function errorInBody(
  sdk: Sdk,
  knobs: MockKnobs,
  options: GuardOptions,
  call: (client: SdkClient) => Promise<string>,
) {
  const { vendor, url } = await startVendor({ knobs: { tokens: TOKENS, ...knobs } })
  const clock = createVirtualClock()
  const guard = startGuard({ concurrency: { limit: 10 }, ...options }, clock)
  let hasHead = false
  const client = sdk.create(url, async (...args: Parameters<Fetch>) => {
    const response = await guard.fetch(...args)
    hasHead = true
    return response
  })
  let isOver = false
  const error = errorOf(call(client)).finally(() => {
    isOver = true
  })
  await until('the head has arrived', () => hasHead)
  while (!isOver) {
    await clock.advance(50)
    await pauseMs(1)
  }
  return { vendor, guard, client, error: await error }
}

async function expectNothingLeft(vendor: MockVendor, guard: ReturnType<typeof startGuard>) {
  await until('the vendor is idle', () => vendor.atOnce === 0)
  await until('every slot is free', () => guard.snapshot().active === 0)
}

describe.concurrent.each(SDKS)('$name SDK through a guard', (sdk) => {
  for (const { knob, knobs, guard: options = {}, inBody, result } of CASES) {
    for (const way of ['in one piece', 'streamed']) {
      it(`${knob}, ${way}: SDK gets ${nameOf(result)} after one attempt`, async () => {
        const ask = (client: SdkClient) => (way === 'streamed' ? client.stream() : client.ask())
        if (inBody) {
          const { vendor, guard, error } = await errorInBody(sdk, knobs, options, ask)
          expect(codeOf(error)).toBe((result as { code: string }).code)
          await expectNothingLeft(vendor, guard)
          expect(vendor.counts.arrived).toBe(1)
          return
        }
        const { vendor, guard, client } = await start(sdk, knobs, options)
        const call = ask(client)
        if ('text' in result) expect(await call).toBe(result.text)
        else {
          const error = await errorOf(call)
          if ('code' in result) expect(codeOf(error)).toBe(result.code)
          else {
            expect(error).toBeInstanceOf(client.errors[result.error])
            expect((error as { status?: number }).status).toBe(result.status)
          }
        }
        await expectNothingLeft(vendor, guard)
        // On a busy machine the timeout may pass before the request arrives.
        expect(vendor.counts.arrived).toBeLessThanOrEqual(1)
      })
    }
  }

  it.each([1, 3, 5])('a stream cut after %i events ends with an error', async (cutAfter) => {
    const { vendor, guard, client } = await start(sdk, { cutAfter, tokenMs: 2 })
    let seen = ''
    const error = await errorOf(client.stream({ onToken: (text) => (seen = text) }))
    expect(error).toBeInstanceOf(Error)
    expect(TEXT.startsWith(seen) && seen !== TEXT).toBe(true)
    expect(outcomesOf(guard)).toEqual({ failure: 1 })
    expect(endsOf(guard)).toEqual({ truncated: 1 })
    await expectNothingLeft(vendor, guard)
  })

  it('a cut answer that is not streamed is an error and counts as a failure', async () => {
    const { vendor, guard, client } = await start(sdk, { cutAfter: 1 })
    expect(await errorOf(client.ask())).toBeInstanceOf(Error)
    expect(outcomesOf(guard)).toEqual({ failure: 1 })
    expect(vendor.counts.arrived).toBe(1)
  })

  it("an error event in a stream becomes the SDK's own error", async () => {
    const { vendor, guard, client } = await start(sdk, { errorAfter: 3, tokenMs: 2 })
    expect(await errorOf(client.stream())).toBeInstanceOf(client.errors.APIError)
    await expectNothingLeft(vendor, guard)
  })

  it('garbage reaches the SDK unchanged, which throws its own error', async () => {
    const { vendor, guard, client } = await start(sdk, { garbage: 'json' })
    expect(await errorOf(client.ask())).toBeInstanceOf(SyntaxError)
    expect(await errorOf(client.stream())).toBeInstanceOf(SyntaxError)
    await expectNothingLeft(vendor, guard)
    expect(vendor.counts.arrived).toBe(2)
  })

  it('merged events give the same result as without a guard', async () => {
    const { vendor, url } = await startVendor({ knobs: { tokens: TOKENS, garbage: 'sse' } })
    const guard = startGuard()
    const outcome = (call: Promise<string>) =>
      call.then(
        (text) => text,
        (error) => error.constructor.name,
      )
    const bare = await outcome(sdk.create(url, fetch).stream())
    expect(await outcome(sdk.create(url, guard.fetch).stream())).toBe(bare)
    await expectNothingLeft(vendor, guard)
  })

  it('a POST without an idempotency key is sent once, whatever `retry` says', async () => {
    const retry = { attempts: 3, budget: 1, baseMs: 1 }
    const { vendor, client } = await start(sdk, { status: 503 }, { retry })
    expect(await errorOf(client.ask())).toBeInstanceOf(client.errors.InternalServerError)
    expect(await errorOf(client.stream())).toBeInstanceOf(client.errors.InternalServerError)
    expect(vendor.counts.arrived).toBe(2)
  })

  it('a POST with an idempotency header is retried with one key for all attempts', async () => {
    const { vendor, client } = await start(
      sdk,
      { status: 503 },
      {
        retry: { attempts: 3, budget: 1, baseMs: 1 },
        fetch: { idempotencyHeader: 'idempotency-key' },
      },
    )
    expect(await errorOf(client.stream())).toBeInstanceOf(client.errors.InternalServerError)
    expect(vendor.counts.arrived).toBe(3)
    const keys = new Set(vendor.calls.map(({ idempotencyKey }) => idempotencyKey))
    expect(keys.size).toBe(1)
    expect([...keys][0]).toMatch(/^[0-9a-f-]{36}$/)
  })

  it('SDK does not notice a vendor that recovers during retries', async () => {
    const { vendor, client, guard } = await start(
      sdk,
      { status: 503 },
      {
        concurrency: { limit: 1 },
        retry: { attempts: 5, budget: 1, baseMs: 30, jitter: 'none' },
        fetch: { idempotencyHeader: 'idempotency-key' },
      },
    )
    const answer = client.stream()
    await until('it was asked twice', () => vendor.counts.arrived >= 2)
    vendor.set({ errorRate: 0 })
    expect(await answer).toBe(TEXT)
    await expectNothingLeft(vendor, guard)
  })

  it('a stream that broke off is not retried', async () => {
    const { vendor, client } = await start(
      sdk,
      { cutAfter: 3, tokenMs: 2 },
      {
        retry: { attempts: 3, budget: 1, baseMs: 1 },
        fetch: { idempotencyHeader: 'idempotency-key' },
      },
    )
    expect(await errorOf(client.stream())).toBeInstanceOf(Error)
    expect(vendor.counts.arrived).toBe(1)
  })

  describe('guard with the `sdk` option', () => {
    const way = { ask: 'in one piece', stream: 'streamed' } as const
    const SILENCES: [string, MockKnobs, GuardOptions, string][] = [
      ['firstByteMs', { stallBefore: true }, { timeout: { firstByteMs: 1_500 } }, 'CALL_TIMEOUT'],
      [
        'idleMs',
        { stallAfter: 3, tokenMs: 2 },
        { timeout: { firstByteMs: 5_000, idleMs: 150 } },
        'CALL_TIMEOUT',
      ],
      [
        'the deadline of the call',
        { stallAfter: 3, tokenMs: 2 },
        { fetch: { describe: () => ({ timeoutMs: 1_500 }) } },
        'DEADLINE_EXCEEDED',
      ],
    ]

    for (const [limit, knobs, options, code] of SILENCES) {
      for (const ask of ['ask', 'stream'] as const) {
        it(`${limit} in an answer ${way[ask]} becomes the SDK's own timeout error`, async () => {
          const fetch = { ...options.fetch, sdk: sdk.itself }
          const own = await errorInBody(sdk, knobs, { ...options, fetch }, (client) =>
            client[ask](),
          )
          const { vendor, guard, client, error } = own
          expect(error).toBeInstanceOf(client.errors.APIConnectionTimeoutError)
          expect(error).toMatchObject({ cause: { code } })
          expect(String(error)).toMatch(/timed out/)
          await expectNothingLeft(vendor, guard)
          // Without the `sdk` option the SDK passes on the original error.
          const plain = await errorInBody(sdk, knobs, options, (each) => each[ask]())
          expect(codeOf(plain.error)).toBe(code)
        })
      }
    }

    it("a guard that closes during a stream becomes the SDK's connection error", async () => {
      const { vendor, url } = await startVendor({ knobs: { tokens: TOKENS, stallAfter: 3 } })
      const spillway = createSpillway()
      const guard = spillway.guard('vendor', { fetch: { sdk: sdk.itself } })
      const answer = errorOf(sdk.create(url, guard.fetch).stream())
      await until('it is inside', () => (vendor.calls[0]?.chunks ?? 0) >= 3)
      await pauseMs(50)
      await spillway.close({ graceMs: 0 })
      const error = await answer
      const { errors } = sdk.create(url)
      expect(error).toBeInstanceOf(errors.APIConnectionError)
      expect(error).not.toBeInstanceOf(errors.APIConnectionTimeoutError)
      expect(error).toMatchObject({ cause: { code: 'SHUTTING_DOWN' } })
    })

    it('a cut stream ends as it does without a guard', async () => {
      const knobs = { cutAfter: 3, tokenMs: 2 }
      const { vendor, client } = await start(sdk, knobs, { fetch: { sdk: sdk.itself } })
      const bare = sdk.create((await startVendor({ knobs: { tokens: TOKENS, ...knobs } })).url)
      const [error, usual] = [await errorOf(client.stream()), await errorOf(bare.stream())]
      expect(String(error)).toBe(String(usual))
      expect(vendor.counts.arrived).toBe(1)
    })
  })

  it("the caller's abort reaches the vendor", async () => {
    const { vendor, guard, client } = await start(sdk, { stallAfter: 3, tokenMs: 2 })
    const leave = new AbortController()
    // Both SDKs silently end a stream that their caller aborted.
    const text = await client.stream({ signal: leave.signal, onToken: () => leave.abort() })
    expect(TEXT.startsWith(text) && text !== TEXT).toBe(true)
    await expectNothingLeft(vendor, guard)
    expect(vendor.calls[0]?.end).toBe('cancelled')
    expect(outcomesOf(guard)).toEqual({ ignored: 1 })
  })

  it('an abort before the headers becomes an APIUserAbortError', async () => {
    const { vendor, guard, client } = await start(sdk, { neverAnswer: true })
    const leave = new AbortController()
    const call = client.ask({ signal: leave.signal })
    await until('it arrived', () => vendor.counts.arrived === 1)
    leave.abort()
    expect(await errorOf(call)).toBeInstanceOf(client.errors.APIUserAbortError)
    await expectNothingLeft(vendor, guard)
    expect(outcomesOf(guard)).toEqual({ ignored: 1 })
  })

  it('an open circuit becomes an APIConnectionError with the refusal as its cause', async () => {
    const { vendor, client } = await start(
      sdk,
      { status: 500 },
      { breaker: { consecutiveFailures: 1, openMs: 60_000 } },
    )
    await errorOf(client.ask())
    const error = await errorOf(client.ask())
    expect(error).toBeInstanceOf(client.errors.APIConnectionError)
    expect(error).not.toBeInstanceOf(client.errors.APIConnectionTimeoutError)
    expect(error).toMatchObject({ cause: { code: 'CIRCUIT_OPEN' } })
    expect(vendor.counts.arrived).toBe(1)
  })

  it('with `respond` an open circuit becomes a 503', async () => {
    const { vendor, client } = await start(
      sdk,
      { status: 500 },
      { breaker: { consecutiveFailures: 1, openMs: 60_000 }, fetch: { respond: true } },
    )
    await errorOf(client.ask())
    for (const ask of [client.ask, client.stream]) {
      const error = (await errorOf(ask())) as Error & { status: number; error: unknown }
      expect(error).toBeInstanceOf(client.errors.InternalServerError)
      expect(error.status).toBe(503)
      expect(JSON.stringify(error.error)).toContain('CIRCUIT_OPEN')
    }
    expect(vendor.counts.arrived).toBe(1)
  })

  it('with `respond` a vendor limit becomes a 429 with Retry-After', async () => {
    const { vendor, client } = await start(
      sdk,
      {},
      { limits: [{ limit: 1, windowMs: 60_000 }], fetch: { respond: true } },
    )
    expect(await client.ask()).toBe(TEXT)
    const error = (await errorOf(client.ask())) as Error & { headers: Headers }
    expect(error).toBeInstanceOf(client.errors.RateLimitError)
    expect(Number(error.headers.get('retry-after'))).toBeGreaterThan(30)
    expect(Number(error.headers.get('retry-after'))).toBeLessThan(90)
    expect(vendor.counts.arrived).toBe(1)
  })

  it('with `respond` a timeout becomes a 504', async () => {
    const { client } = await start(
      sdk,
      { neverAnswer: true },
      { ...SHORT, fetch: { respond: true } },
    )
    expect(await errorOf(client.ask())).toMatchObject({ status: 504 })
  })
})
