// test-group: sockets

import { describe, expect, it } from 'vitest'
import { dataOf, readAll, startVendor, textOf, until } from '../../spillway/test/mock-client.js'

const STREAM = { stream: true }

describe('mock vendor latency', () => {
  it('latency passes before the headers and between tokens', async () => {
    const { vendor, chat } = await startVendor({ knobs: { latencyMs: 60, tokens: 4, tokenMs: 20 } })
    await (await chat(STREAM)).text()
    await (await chat()).text()
    const [streamed, whole] = vendor.calls
    expect(streamed!.headersAtMs! - streamed!.atMs).toBeGreaterThanOrEqual(60)
    expect(streamed!.endedAtMs! - streamed!.headersAtMs!).toBeGreaterThanOrEqual(3 * 20)
    // An answer that is not streamed is sent after all of its tokens.
    expect(whole!.headersAtMs! - whole!.atMs).toBeGreaterThanOrEqual(60 + 4 * 20)
  })

  it('values are drawn from a range and repeat with the seed', async () => {
    const draw = async (seed: number) => {
      const { chat } = await startVendor({ seed, knobs: { tokens: [1, 1_000] } })
      const answers = [await chat(), await chat(), await chat()]
      const bodies = await Promise.all(answers.map((answer) => answer.json()))
      return (bodies as { usage: { completion_tokens: number } }[]).map(
        ({ usage }) => usage.completion_tokens,
      )
    }
    const drawn = await draw(1)
    expect(new Set(drawn).size).toBe(3)
    expect(await draw(1)).toEqual(drawn)
    expect(await draw(2)).not.toEqual(drawn)
  })

  it('slowStart adds latency that decreases over time', async () => {
    const { vendor, chat } = await startVendor({
      knobs: { slowStart: { extraMs: 400, overMs: 60_000 } },
    })
    await chat()
    const { headersAtMs, atMs } = vendor.calls[0]!
    expect(headersAtMs! - atMs).toBeGreaterThan(200)
    expect(headersAtMs! - atMs).toBeLessThan(60_000)
    vendor.set({ slowStart: { extraMs: 60_000, overMs: 1 } })
    await new Promise((resolve) => setTimeout(resolve, 5))
    expect((await chat()).status).toBe(200)
  })
})

describe('mock vendor failures', () => {
  it.each([
    [500, 'server_error', 'api_error'],
    [503, 'server_error', 'api_error'],
    [529, 'server_error', 'overloaded_error'],
    [403, 'invalid_request_error', 'permission_error'],
  ])('status %i comes in the error format of each API', async (status, openai, anthropic) => {
    const { chat, messages } = await startVendor({ knobs: { status } })
    const one = await chat(STREAM)
    expect(one.status).toBe(status)
    expect(one.headers.get('retry-after')).toBeNull()
    expect(await one.json()).toMatchObject({ error: { type: openai, param: null, code: null } })
    const other = await messages(STREAM)
    expect(other.status).toBe(status)
    expect(await other.json()).toMatchObject({
      type: 'error',
      error: { type: anthropic },
      request_id: other.headers.get('request-id'),
    })
  })

  it('errorRate fails its share of requests, the same ones for the same seed', async () => {
    const run = async () => {
      const { vendor, chat } = await startVendor({ seed: 7, knobs: { errorRate: 0.3 } })
      for (let i = 0; i < 200; i++) await (await chat()).text()
      expect(vendor.counts.failed).toBeGreaterThan(40)
      expect(vendor.counts.failed).toBeLessThan(80)
      return vendor.calls.map(({ status }) => status)
    }
    expect(await run()).toEqual(await run())
  })

  it('a 429 has Retry-After in whole seconds, or none', async () => {
    const { vendor, chat, messages } = await startVendor({
      knobs: { status: 429, retryAfterMs: '1.2s' },
    })
    const hinted = await chat()
    expect(hinted.headers.get('retry-after')).toBe('2')
    expect(await hinted.json()).toMatchObject({ error: { code: 'rate_limit_exceeded' } })
    vendor.set({ retryAfterMs: false })
    const bare = await messages()
    expect(bare.headers.get('retry-after')).toBeNull()
    expect(await bare.json()).toMatchObject({ error: { type: 'rate_limit_error' } })
    expect(vendor.counts.throttled).toBe(2)
  })

  it('errorAfter sends an error in the middle of a stream', async () => {
    const { chat, messages } = await startVendor({ knobs: { errorAfter: 2 } })
    const stream = await (await chat(STREAM)).text()
    expect(dataOf(stream).at(-1)).toMatchObject({ error: { type: 'server_error' } })
    expect(stream).not.toMatch('[DONE]')
    const events = await (await messages(STREAM)).text()
    expect(events.match(/event: content_block_delta/g)).toHaveLength(2)
    expect(events).toMatch(/event: error\ndata: {"type":"error","error":{"type":"overloaded_error"/)
    expect((await chat()).status).toBe(500)
  })
})

describe('mock vendor silence', () => {
  it('neverAnswer sends nothing at all', async () => {
    const { vendor, chat } = await startVendor({ knobs: { neverAnswer: true } })
    const leave = new AbortController()
    const call = chat({}, { signal: leave.signal })
    await until(() => vendor.atOnce === 1)
    leave.abort()
    await expect(call).rejects.toThrow()
    await vendor.waitForIdle()
    expect(vendor.calls[0]).toMatchObject({ end: 'cancelled', headersAtMs: undefined, bytes: 0 })
  })

  it.each([STREAM, {}])('stallBefore stalls after the headers: %o', async (body) => {
    const { vendor, chat } = await startVendor({ knobs: { stallBefore: true } })
    const leave = new AbortController()
    const response = await chat(body, { signal: leave.signal })
    expect(response.status).toBe(200)
    leave.abort()
    expect(await readAll(response)).toEqual({ text: '', broke: true })
    await vendor.waitForIdle()
    expect(vendor.calls[0]).toMatchObject({ end: 'cancelled', chunks: 0, bytes: 0 })
  })

  it('stallAfter stalls after a number of tokens, and stallMs ends it', async () => {
    const { vendor, chat } = await startVendor({ knobs: { tokens: 4, stallAfter: 2 } })
    const leave = new AbortController()
    const response = await chat(STREAM, { signal: leave.signal })
    await until(() => vendor.calls[0]?.tokensSent === 2)
    const reading = readAll(response)
    await new Promise((resolve) => setTimeout(resolve, 30))
    leave.abort()
    const { text } = await reading
    expect(textOf(text)).toBe('0 1')

    vendor.set({ stallMs: 50 })
    for (const body of [STREAM, {}]) await (await chat(body)).text()
    for (const call of vendor.calls.slice(1)) {
      expect(call).toMatchObject({ end: 'completed', tokensSent: 4 })
      expect(call.endedAtMs! - call.headersAtMs!).toBeGreaterThanOrEqual(50)
    }
  })
})

describe('mock vendor damage', () => {
  it('cutAfter cuts a stream after exactly that number of chunks', async () => {
    const { vendor, chat } = await startVendor({ knobs: { tokens: 10 } })
    for (const cutAfter of [0, 1, 5]) {
      vendor.set({ cutAfter })
      const { text, broke } = await readAll(await chat(STREAM))
      expect(broke).toBe(true)
      expect(dataOf(text)).toHaveLength(cutAfter)
      await vendor.waitForIdle()
      expect(vendor.calls.at(-1)).toMatchObject({ end: 'cut', chunks: cutAfter, status: 200 })
    }
    expect(vendor.counts).toMatchObject({ cut: 3, cancelled: 0, succeeded: 0 })
  })

  it('cutAfter cuts an answer that is not streamed in the middle', async () => {
    const { chat } = await startVendor({ knobs: { cutAfter: 1 } })
    const { text, broke } = await readAll(await chat())
    expect(broke).toBe(true)
    expect(text).toMatch(/^{"id":"chatcmpl-/)
  })

  it("garbage: 'json' sends invalid JSON with status 200", async () => {
    const { chat, messages } = await startVendor({ knobs: { garbage: 'json', tokens: 4 } })
    await expect((await chat()).json()).rejects.toThrow(SyntaxError)
    for (const ask of [chat, messages]) {
      const stream = await (await ask(STREAM)).text()
      expect(() => dataOf(stream)).toThrow(SyntaxError)
      // The frame and the rest of the stream are intact.
      expect(stream).toMatch(/\[DONE\]\n\n$|"message_stop"}\n\n$/)
    }
  })

  it("garbage: 'sse' drops separators and the end but closes cleanly", async () => {
    const { chat } = await startVendor({ knobs: { garbage: 'sse', tokens: 4 } })
    const { text, broke } = await readAll(await chat(STREAM))
    expect(broke).toBe(false)
    const frames = text.split('\n\n')
    expect(frames.slice(0, 3).map((frame) => dataOf(frame).length)).toEqual([1, 1, 1])
    expect(dataOf(frames[3]!)).toHaveLength(2)
    expect(text).not.toMatch('[DONE]')
  })
})

describe('scope of a knob', () => {
  it('knobs apply to all requests, a model or one request, and the narrowest wins', async () => {
    const { vendor, chat } = await startVendor({
      knobs: { tokens: 2 },
      models: { down: { status: 503 } },
    })
    const statusOf = async (body: object, mock?: object) => {
      const headers = mock && { headers: { 'x-mock': JSON.stringify(mock) } }
      return (await chat(body, headers)).status
    }
    expect(await statusOf({})).toBe(200)
    expect(await statusOf({ model: 'down' })).toBe(503)
    expect(await statusOf({ model: 'down' }, { errorRate: 0 })).toBe(200)
    expect(await statusOf({}, { status: 529 })).toBe(529)
    // An error rate for another status does not weaken it.
    vendor.set({ errorRate: 0.01 })
    expect(await statusOf({}, { status: 529 })).toBe(529)
    expect(vendor.calls.every(({ completionTokens }) => completionTokens === 2)).toBe(true)
    vendor.set({ status: 500 }, 'gpt')
    expect(await statusOf({})).toBe(500)
    vendor.reset()
    expect(await statusOf({})).toBe(200)
    expect(await statusOf({ model: 'down' })).toBe(503)
  })

  it('mistakes in the x-mock header are answered with 400', async () => {
    const { chat } = await startVendor()
    const response = await chat({}, { headers: { 'x-mock': '{"latency":5}' } })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      error: { message: "x-mock.latency: unknown option; did you mean 'latencyMs'?" },
    })
    expect((await chat({}, { headers: { 'x-mock': 'latency' } })).status).toBe(400)
  })
})
