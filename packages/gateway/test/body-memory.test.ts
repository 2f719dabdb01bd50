// test-group: sockets

/** Memory of bodies that are held at once (`body.maxTotalBytes`). */
import { once } from 'node:events'
import { gzipSync } from 'node:zlib'
import { describe, expect, it, vi } from 'vitest'
import { until } from '../../spillway/test/streams/stream-kit.js'
import { startGateway } from './gateway-kit.js'
import { startHttpVendor } from './http1-kit.js'
import { MB, sent } from './refused-upload-kit.js'
import { connectTo } from './security/raw.js'

describe('memory of request bodies', () => {
  it('bodies held at once stay below maxTotalBytes, and a request beyond it is a 503 with Retry-After', async () => {
    let answerAll = () => {}
    const mayAnswer = new Promise<void>((resolve) => {
      answerAll = resolve
    })
    const vendor = await startHttpVendor(async (_, response) => {
      await mayAnswer
      response.setHeader('content-type', 'application/json').end('{}')
    })
    const { url, failures } = await startGateway({
      vendors: { openai: { protocol: 'openai', url: vendor.url, concurrency: { limit: 100 } } },
      routes: [{ vendor: 'openai' }],
      body: { maxBytes: '1mb', maxTotalBytes: '4mb' },
    })
    const content = 'x'.repeat(MB - 1_000)
    const upload = async () => {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'gpt', messages: [{ role: 'user', content }] }),
      })
      return [response.status, response.headers.get('retry-after'), await response.text()] as const
    }
    const held = Array.from({ length: 4 }, upload)
    await until('four are held', () => vendor.requests.length === 4)
    const refused = await Promise.all(Array.from({ length: 20 }, upload))
    for (const [status, retryAfter, text] of refused) {
      expect([status, retryAfter]).toEqual([503, '1'])
      expect(text).toContain('reached body.maxTotalBytes (4194304 bytes)')
    }
    answerAll()
    expect((await Promise.all(held)).map(([status]) => status)).toEqual([200, 200, 200, 200])
    // The memory of all of them was given back.
    for (let i = 0; i < 8; i++) expect((await upload())[0]).toBe(200)
    expect(failures).toEqual([])
  })

  it('the memory of a compressed body is given back if its client disconnects while it is decoded', async () => {
    const vendor = await startHttpVendor((_, response) => {
      response.setHeader('content-type', 'application/json').end('{}')
    })
    const { url } = await startGateway({
      vendors: { openai: { protocol: 'openai', url: vendor.url } },
      routes: [{ vendor: 'openai' }],
      body: { maxBytes: '1mb', maxTotalBytes: '1mb' },
    })
    // It is received as one chunk and decoded in about sixty.
    const parts = Array.from({ length: 1_200 }, (_, index) => `${index}${'x'.repeat(800)}`)
    const text = JSON.stringify({ model: 'gpt', messages: [{ content: parts.join('') }] })
    const body = gzipSync(text)
    const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: ${body.length}\r\n\r\n`
    for (let i = 0; i < 60; i++) {
      const socket = connectTo(url)
      socket.on('error', () => {})
      await sent(socket, Buffer.concat([Buffer.from(head), body]))
      await new Promise((resolve) => setTimeout(resolve, i % 4))
      socket.resetAndDestroy()
      await once(socket, 'close')
    }
    const upload = () =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: text,
      })
    await vi.waitFor(async () => expect((await upload()).status).toBe(200), 5_000)
  })
})
