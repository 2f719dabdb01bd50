// test-group: io

import { execFile } from 'node:child_process'
import { type IncomingMessage, request } from 'node:http'
import { fileURLToPath } from 'node:url'
import { describe, expect } from 'vitest'
import { it } from '../../spillway/test/concurrent-tests.js'
import { usualOrLong } from '../../spillway/test/long-run.js'
import { readAll, startVendor, textOf, until } from '../../spillway/test/mock-client.js'

const STREAM = { stream: true }
const STREAMS = usualOrLong(250, 1_000)

describe.concurrent('mock vendor call log', () => {
  it('call log records key, headers and end of each call', async () => {
    const { vendor, chat } = await startVendor({ knobs: { tokens: 5 } })
    const beforeMs = performance.now()
    const response = await chat(STREAM, {
      headers: {
        authorization: 'Bearer k1',
        'idempotency-key': 'i1',
        'x-stainless-retry-count': '2',
      },
    })
    const { length } = await response.text()
    await vendor.waitForIdle()
    const [call] = vendor.calls
    expect(call).toMatchObject({
      number: 1,
      api: 'openai',
      key: 'k1',
      model: 'gpt',
      idempotencyKey: 'i1',
      retryCount: 2,
      streamed: true,
      promptTokens: 3,
      completionTokens: 5,
      status: 200,
      chunks: 8,
      tokensSent: 5,
      bytes: length,
      end: 'completed',
    })
    expect(call!.requestId).toBe(response.headers.get('x-request-id'))
    expect(call!.atMs).toBeGreaterThanOrEqual(beforeMs)
    expect(call!.endedAtMs).toBeGreaterThanOrEqual(call!.headersAtMs!)
  })

  it('call log records when a client aborted and how far the stream was', async () => {
    const { vendor, chat } = await startVendor({ knobs: { tokens: 10_000, tokenMs: 5 } })
    const leave = new AbortController()
    const response = await chat(STREAM, { signal: leave.signal })
    await until(() => (vendor.calls[0]?.tokensSent ?? 0) >= 3)
    const leftAtMs = performance.now()
    leave.abort()
    await readAll(response)
    await vendor.waitForIdle()
    const [call] = vendor.calls
    expect(call!.end).toBe('cancelled')
    expect(call!.endedAtMs).toBeGreaterThanOrEqual(leftAtMs)
    const { chunks } = call!
    expect(chunks).toBeLessThan(10_000)
    expect(vendor.counts).toMatchObject({ arrived: 1, cancelled: 1, succeeded: 0 })
    // A vendor that went on generating would do so as often as for the next stream.
    const next = await chat(STREAM)
    await until(() => (vendor.calls[1]?.tokensSent ?? 0) >= 6)
    expect(call!.chunks).toBe(chunks)
    // Fetch cancels the body of a response that is garbage collected, so the response is still used here.
    await next.body?.cancel()
  })

  it('call log records a client that leaves before its request is complete', async () => {
    const { vendor, url } = await startVendor()
    const upload = request(`${url}/v1/chat/completions`, { method: 'POST' })
    upload.on('error', () => {})
    upload.write('{"model":')
    await until(() => vendor.atOnce === 1)
    upload.destroy()
    await vendor.waitForIdle()
    expect(vendor.calls[0]).toMatchObject({ end: 'cancelled', model: '', status: undefined })
  })

  it('mock vendor counts the most concurrent calls', async () => {
    const { vendor, chat } = await startVendor({ knobs: { neverAnswer: true } })
    const leave = new AbortController()
    const calls = [1, 2, 3].map(() => chat({}, { signal: leave.signal }))
    await until(() => vendor.atOnce === 3)
    leave.abort()
    await Promise.allSettled(calls)
    await vendor.waitForIdle()
    expect(vendor.mostAtOnce).toBe(3)
    expect(vendor.atOnce).toBe(0)
  })

  it('mock vendor counts the most calls and tokens in any window, by model and key', async () => {
    const { vendor, chat } = await startVendor({ knobs: { tokens: 7 } })
    for (const model of ['a', 'a', 'b', 'b']) await (await chat({ model })).text()
    await vendor.waitForIdle()
    expect(vendor.mostInAnyWindow('1h')).toBe(4)
    expect(vendor.mostInAnyWindow('1h', { model: 'a' })).toBe(2)
    expect(vendor.mostInAnyWindow('1h', { model: 'a', key: 'unknown' })).toBe(0)
    expect(vendor.mostInAnyWindow('1h', { unit: 'tokens', model: 'b' })).toBe(2 * (3 + 7))
    // Too short for the first call and the last one together.
    const [first = 0, , , last = 0] = vendor.calls.map(({ atMs }) => atMs)
    expect(vendor.mostInAnyWindow(last - first - 0.001)).toBe(3)
    vendor.clear()
    expect(vendor.mostInAnyWindow('1h')).toBe(0)
    expect(vendor.counts.arrived).toBe(0)
    expect(vendor.calls).toEqual([])
  })

  it('mostInAnyWindow() covers all keys and models', async () => {
    const { vendor, chat } = await startVendor({ knobs: { latencyMs: 50 } })
    for (const model of ['a', 'b', 'a']) await (await chat({ model })).text()
    expect(vendor.mostInAnyWindow(40)).toBe(1)
    expect(vendor.mostInAnyWindow('1h')).toBe(3)
  })

  it('call log keeps the newest calls and counts all', async () => {
    const { vendor, chat } = await startVendor({ maxCalls: 2 })
    for (let i = 0; i < 4; i++) await (await chat()).text()
    expect(vendor.calls.map(({ number }) => number)).toEqual([3, 4])
    expect(vendor.counts.arrived).toBe(4)
    expect(vendor.mostInAnyWindow('1h')).toBe(4)
  })
})

describe.concurrent('mock vendor sockets', () => {
  it('mock vendor waits for a client that reads slowly', async () => {
    const tokens = 100_000
    const { vendor, url } = await startVendor({ knobs: { tokens } })
    const answer = await new Promise<IncomingMessage>((resolve) => {
      request(`${url}/v1/chat/completions`, { method: 'POST' }, resolve).end(
        JSON.stringify({ model: 'gpt', messages: [], stream: true }),
      )
    })
    let before = -1
    await until(() => {
      const still = vendor.calls[0]!.tokensSent === before
      before = vendor.calls[0]!.tokensSent
      return still && before > 0
    })
    expect(before).toBeLessThan(tokens)
    let bytes = 0
    for await (const part of answer) bytes += part.length
    expect(vendor.calls[0]).toMatchObject({ tokensSent: tokens, bytes })
  })

  it(`mock vendor serves ${STREAMS} complete streams at once`, async () => {
    const { vendor, chat } = await startVendor({
      knobs: { tokens: 20, tokenMs: 5, stallAfter: 20 },
    })
    const leave = new AbortController()
    const texts: string[] = []
    let complete = 0
    // No stream ends before all have arrived and have all their tokens.
    const readings = Array.from({ length: STREAMS }, async (_, client) => {
      const { body } = await chat(STREAM, { signal: leave.signal })
      texts[client] = ''
      const decoder = new TextDecoder()
      for await (const part of body ?? []) {
        texts[client] += decoder.decode(part)
        if (texts[client].includes('" 19"')) complete++
      }
    })
    await until(() => complete === STREAMS)
    leave.abort()
    await Promise.allSettled(readings)
    const whole = Array.from({ length: 20 }, (_, token) => token).join(' ')
    expect(new Set(texts.map(textOf))).toEqual(new Set([whole]))
    await vendor.waitForIdle()
    expect(vendor.mostAtOnce).toBe(STREAMS)
    expect(vendor.sockets).toMatchObject({ opened: STREAMS, mostOpen: STREAMS })
    expect(vendor.counts).toMatchObject({ arrived: STREAMS, cancelled: STREAMS })
  })

  it('close() destroys all sockets, whatever they wait for', async () => {
    const { vendor, chat } = await startVendor({ knobs: { tokens: 10 } })
    const silent = chat({}, { headers: { 'x-mock': '{"neverAnswer":true}' } })
    silent.catch(() => {})
    const stalled = await chat(STREAM, { headers: { 'x-mock': '{"stallAfter":1}' } })
    await until(() => vendor.calls.some(({ tokensSent }) => tokensSent === 1))
    await (await chat()).text()
    await vendor.close()
    await expect(silent).rejects.toThrow()
    expect((await readAll(stalled)).broke).toBe(true)
    expect(vendor.sockets.open).toBe(0)
    expect(vendor.atOnce).toBe(0)
    expect(vendor.counts).toMatchObject({ closed: 2, succeeded: 1, cancelled: 0 })
  })

  it('only with unref: true does the mock vendor let the process end', async () => {
    expect(await runProgram('await createMockVendor({ unref: true }).start()')).toBe(0)
    const running = `
      await createMockVendor().start()
      setTimeout(() => process.exit(7), 300)`
    expect(await runProgram(running)).toBe(7)
  })

  it('mock vendor leaves no timer, also for clients that left', async () => {
    const program = `
      const vendor = createMockVendor({ knobs: { latencyMs: '1h' } })
      const { url } = await vendor.start()
      const body = '{"model":"gpt","messages":[]}'
      const leave = new AbortController()
      for (const signal of [leave.signal, null]) {
        fetch(url + '/v1/chat/completions', { method: 'POST', body, signal }).catch(() => {})
      }
      while (vendor.atOnce < 2) await new Promise(setImmediate)
      leave.abort()
      while (vendor.atOnce > 1) await new Promise(setImmediate)
      await vendor.close()`
    expect(await runProgram(program)).toBe(0)
  })
})

/** Exit code of the program, which ends without a signal. */
function runProgram(body: string): Promise<number | string | null> {
  const program = `import { createMockVendor } from '@spillway/mock-vendor'\n${body}`
  const options = { cwd: fileURLToPath(new URL('..', import.meta.url)), timeout: 100_000 }
  return new Promise((resolve) => {
    const args = ['--input-type=module', '--eval', program]
    execFile(process.execPath, args, options, (error) => {
      resolve(error === null ? 0 : (error.code ?? null))
    })
  })
}
