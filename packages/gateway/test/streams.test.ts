// test-group: sockets

/** Streams are passed on as they arrive, and a broken one is reported. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { pauseMs, readAll, tokensOf, until } from '../../spillway/test/streams/stream-kit.js'
import { expectIdle, startGateway } from './gateway-kit.js'

/** The raw bytes of the answer up to its end. */
async function rawChat(url: string, body: object): Promise<string> {
  const { port } = new URL(url)
  const socket = connect(Number(port), '127.0.0.1')
  const text = JSON.stringify({ model: 'gpt', messages: [], ...body })
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
  )
  let all = ''
  socket.setEncoding('utf8').on('data', (chunk) => {
    all += chunk
  })
  await once(socket, 'close')
  return all
}

describe('streams', () => {
  it('a stream arrives while the vendor sends it', async () => {
    const { chat, vendor } = await startGateway({}, { knobs: { tokens: 40, stallAfter: 20 } })
    const answer = await chat({ stream: true })
    const reader = answer.body!.getReader()
    const chunks: Uint8Array[] = []
    // The vendor never sends the rest, so this would not end if anything were held back.
    while (tokensOf(chunks).split(' ').length < 20) chunks.push((await reader.read()).value!)
    expect(vendor.calls[0]).toMatchObject({ end: 'open', tokensSent: 20 })
    await reader.cancel()
  })

  it('a cut stream ends with an error event, without [DONE], and as HTTP demands', async () => {
    const running = await startGateway({}, { knobs: { tokens: 60, cutAfter: 40 } })
    const raw = await rawChat(running.url, { stream: true })
    expect(raw).toMatch(
      /data: \{"error":\{"message":"Spillway gateway: openai could not be reached or ended its answer early/,
    )
    expect(raw).toContain('"code":"VENDOR_ERROR"')
    expect(raw).not.toContain('[DONE]')
    // The last chunk of a complete body.
    expect(raw).toMatch(/\r\n0\r\n\r\n$/)
    expect(running.gateway.spillway.snapshot().guards[0]?.outcomes).toMatchObject({ failure: 1 })
    expect(running.records[0]).toMatchObject({ code: 'VENDOR_ERROR', end: 'truncated' })
  })

  it('a stalled stream ends with an error event of its protocol', async () => {
    const guard = { timeout: { idleMs: 100 } }
    const { messages } = await startGateway({ guard }, { knobs: { stallAfter: 3 } })
    const { chunks, error } = await readAll((await messages({ stream: true })).body!)
    const text = Buffer.concat(chunks).toString()
    expect(text).toMatch(/event: error\ndata: \{"type":"error","error":\{"type":"timeout_error"/)
    expect(text).not.toContain('message_stop')
    expect(error).toBeUndefined()
  })

  it('the usage of a stream is settled, and shown to the client only on request', async () => {
    const guard = { limits: [{ unit: 'tokens', limit: 1_000, windowMs: '1h' }] }
    const running = await startGateway({ guard }, { knobs: { tokens: 10 } })
    // Each reserves 600 and uses 13.
    for (let i = 0; i < 3; i++) {
      const text = await (await running.chat({ stream: true, max_tokens: 600 })).text()
      expect(text).not.toContain('"choices":[]')
      expect(text).toContain('[DONE]')
    }
    const withUsage = await running.chat({
      stream: true,
      max_tokens: 600,
      stream_options: { include_usage: true },
    })
    expect(await withUsage.text()).toContain('"total_tokens"')
    await until('all are recorded', () => running.records.length === 4)
    for (const { usage } of running.records) expect(usage).toMatchObject({ outputTokens: 10 })
  })

  it('a slow client makes the vendor wait, and nothing is buffered', async () => {
    const running = await startGateway({}, { knobs: { tokens: 200_000 } })
    const answer = await running.chat({ stream: true })
    const reader = answer.body!.getReader()
    await reader.read()
    const [call] = running.vendor.calls
    let sent = -1
    while (call?.bytes !== sent) {
      sent = call?.bytes ?? 0
      await pauseMs(400)
    }
    expect(call?.end).toBe('open')
    // Out of fifty million bytes, only the content of four socket buffers was sent.
    expect(sent).toBeLessThan(25_000_000)
    await reader.cancel()
    await expectIdle(running)
  })

  it('keepAliveMs sends comments until the first token and leaves the stream unchanged', async () => {
    const running = await startGateway(
      { routes: [{ vendor: 'openai', keepAliveMs: 40 }] },
      { knobs: { latencyMs: 500, tokens: 3 } },
    )
    const answer = await running.chat({ stream: true })
    const { chunks } = await readAll(answer.body!)
    const text = Buffer.concat(chunks).toString()
    expect(text.match(/^(: waiting\n\n){2,}data: /)).not.toBeNull()
    expect(tokensOf(chunks)).toBe('0 1 2')
    // A request without streaming gets no comments.
    expect(await (await running.chat()).json()).toHaveProperty('choices')
  })

  it('a promised stream that is refused ends with an error event', async () => {
    const { chat } = await startGateway(
      { routes: [{ vendor: 'openai', keepAliveMs: 20 }] },
      { knobs: { latencyMs: 100, status: 500 } },
    )
    const answer = await chat({ stream: true })
    expect(answer.status).toBe(200)
    const { chunks, error } = await readAll(answer.body!)
    expect(Buffer.concat(chunks).toString()).toContain('"error":{"message"')
    expect(error).toBeUndefined()
  })

  it('a stream whose client disconnects ends at the vendor before the vendor sends another token', async () => {
    // The next token is due long after the disconnect has reached the vendor, also on a busy machine.
    const knobs = { tokens: 1_000, stallAfter: 1, stallMs: 20_000 }
    const running = await startGateway({}, { knobs })
    for (let i = 0; i < 9; i++) {
      const leave = new AbortController()
      const answer = await running.chat({ stream: true }, { signal: leave.signal })
      await answer.body!.getReader().read()
      leave.abort()
      await until('the vendor is idle', () => running.vendor.atOnce === 0)
    }
    expect(new Set(running.vendor.calls.map(({ tokensSent }) => tokensSent))).toEqual(new Set([1]))
    expect(new Set(running.vendor.calls.map(({ end }) => end))).toEqual(new Set(['cancelled']))
  })
})
