// test-group: sockets

/** Connections of clients that still send a body when the answer is sent: late data, and how they end. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { until } from '../../spillway/test/streams/stream-kit.js'
import { startGateway } from './gateway-kit.js'
import { get, startEchoGateway, startHttpVendor, Talk } from './http1-kit.js'
import { CHUNK, MB, sent, startRefusingGateway } from './refused-upload-kit.js'
import { connectTo, statusesIn } from './security/raw.js'

describe('connections of uploads that are answered early', () => {
  it('a refused HEAD request with a body receives its status while the body is sent', async () => {
    const { url } = await startRefusingGateway('HTTP/1.1')
    const talk = new Talk(url)
    await talk.send(`HEAD /echo HTTP/1.1\r\nHost: a\r\nContent-Length: ${MB}\r\n\r\nthe beginning`)
    await until('it is closed', () => talk.closed)
    expect(talk.statuses).toEqual([400])
  })

  it('an upload that is refused behind a running answer waits for the end of that answer', async () => {
    let answer = () => {}
    const vendor = await startHttpVendor((_, response) => {
      response.write('the beginning, ')
      answer = () => void response.end('the end')
    })
    const { url } = await startEchoGateway(vendor, { body: { maxBytes: '1mb' } })
    const talk = new Talk(url)
    await talk.send(get('/echo/1'))
    await talk.receives(1, 'the beginning')
    await talk.send(`POST /echo/2 HTTP/1.1\r\nHost: a\r\nContent-Length: ${2 * MB}\r\n\r\n`)
    for (let bytes = 0; bytes < MB; bytes += CHUNK.length) await talk.send(CHUNK.toString())
    expect(talk.statuses).toEqual([200])
    answer()
    await until('it is closed', () => talk.closed)
    expect(talk.statuses).toEqual([200, 413])
    expect(talk.text).toContain('the end')
  })

  it('a refused request with a small body leaves its connection usable', async () => {
    const { url } = await startRefusingGateway('HTTP/1.1')
    const talk = new Talk(url)
    const head = 'POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n'
    await talk.send(`${head}01234`)
    await talk.receives(1, 'NOT_FOUND')
    await talk.send(`56789${head}0123456789`)
    await talk.receives(2)
    expect(talk.statuses).toEqual([404, 404])
    expect(talk.closed).toBe(false)
  })

  it.each(['HTTP/1.1', 'TLS'] as const)(
    'headers that are too large are answered with 431 over %s while they are sent',
    async (listener) => {
      const { url } = await startRefusingGateway(listener)
      for (let i = 0; i < 10; i++) {
        const socket = connectTo(url)
        socket.on('error', () => {})
        let text = ''
        // It begins to read when it has sent everything.
        await sent(socket, Buffer.from(`GET /echo HTTP/1.1\r\nHost: a\r\nLong: `))
        for (let sentBytes = 0; sentBytes < 2 * MB; sentBytes += CHUNK.length) {
          await sent(socket, CHUNK)
        }
        socket.on('data', (chunk) => {
          text += chunk
        })
        await once(socket, 'close')
        expect(statusesIn(text)).toEqual([431])
      }
    },
  )

  it('a request that follows a refused upload on its connection is not sent to the vendor', async () => {
    const vendor = await startHttpVendor((_, response) => {
      response.setHeader('content-type', 'application/json').end('{}')
    })
    const { url, records } = await startGateway({
      vendors: { openai: { protocol: 'openai', url: vendor.url } },
      routes: [{ vendor: 'openai' }],
      body: { maxBytes: '100kb' },
    })
    const post = (length: number) =>
      `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`
    const socket = connectTo(url)
    // The client continues to send after the end of the answer.
    socket.allowHalfOpen = true
    socket.on('error', () => {})
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    await sent(socket, Buffer.from(post(200_000)))
    await once(socket, 'end')
    expect(statusesIn(text)).toEqual([413])
    const closed = once(socket, 'close')
    const body = JSON.stringify({ model: 'gpt', messages: [] })
    await sent(socket, Buffer.alloc(199_000, 'x'))
    // In one packet with the end of the first body.
    socket.end(`${'x'.repeat(1_000)}${post(body.length)}${body}`)
    await closed
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    expect(answer.status).toBe(200)
    await until('both are recorded', () => records.length >= 2)
    expect(records.map(({ status }) => status)).toEqual([413, 200])
    expect(vendor.requests).toHaveLength(1)
  })

  it('a client that stops sending receives the end of an answer whose length was not announced', async () => {
    const server = createServer((_, response) => {
      response.write('the beginning, ')
      setImmediate(() => response.end('the end'))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close().closeAllConnections())
    const vendor = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const written = { body: { keepBytes: 1_000 } }
    const { url, records } = await startEchoGateway({ url: vendor, requests: [] }, written)
    const talk = new Talk(url)
    await talk.send(
      `POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ${MB}\r\n\r\n${'x'.repeat(50_000)}`,
    )
    await until('the answer has ended', () => talk.ended)
    expect(talk.text).toMatch(/transfer-encoding: chunked/i)
    expect(talk.text).toMatch(/\r\n0\r\n\r\n$/)
    await until('it is recorded', () => records.length === 1)
    expect(records).toMatchObject([{ status: 200, code: undefined }])
  })

  it('a client that goes on sending after a malformed chunk is disconnected long before 1 GB', async () => {
    const { url } = await startEchoGateway(await startHttpVendor())
    const socket = connectTo(url)
    socket.allowHalfOpen = true
    let text = ''
    let failure: unknown
    socket.on('error', (error) => {
      failure = error
    })
    socket.on('data', (chunk) => {
      text += chunk
    })
    const head = 'POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n'
    await sent(socket, Buffer.from(head))
    await once(socket, 'end')
    expect(statusesIn(text)).toEqual([400])
    let sentBytes = 0
    const chunk = Buffer.alloc(MB, 'x')
    while (failure === undefined && sentBytes < 1_024 * MB) {
      await new Promise((resolve) => socket.write(chunk, resolve))
      sentBytes += chunk.length
    }
    expect(failure).toMatchObject({ code: expect.stringMatching(/EPIPE|ECONNRESET/) })
    expect(sentBytes).toBeGreaterThanOrEqual(64 * MB)
  })
})
