// test-group: io, slow

/** Long prompts and large uploads through a gateway process, whose memory is read from its metrics. */
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { until } from '../../spillway/test/streams/stream-kit.js'
import { startGatewayProcess } from './gateway-process.js'
import { get, Talk } from './http1-kit.js'

const MB = 1_048_576
const UPLOAD_BYTES = 160 * MB

/** Counts the bytes of each body and drops them. */
async function startSink() {
  const received: number[] = []
  const server = createServer(async (incoming, response) => {
    let bytes = 0
    try {
      for await (const chunk of incoming) bytes += chunk.length
    } catch {
      return
    }
    received.push(bytes)
    response.setHeader('content-type', 'application/json').end('{"usage":{"total_tokens":1}}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close().closeAllConnections())
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

async function start() {
  const sink = await startSink()
  const gateway = await startGatewayProcess({
    config: {
      vendors: { openai: { protocol: 'openai', url: sink.url } },
      routes: [{ path: '/v1/*', vendor: 'openai' }],
      body: { maxBytes: '200mb' },
    },
  })
  const residentBytes = async () => {
    const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
    return Number(/^process_resident_memory_bytes (\S+)/m.exec(text)?.[1])
  }
  return { ...gateway, received: sink.received, residentBytes }
}

it('an upload of 160 MB passes, and the gateway never holds half of it', async () => {
  const { url, received, residentBytes } = await start()
  const beforeBytes = await residentBytes()
  let mostBytes = 0
  const upload = request(`${url}/v1/files`, {
    method: 'POST',
    headers: { 'content-type': 'multipart/form-data; boundary=x', 'content-length': UPLOAD_BYTES },
  })
  const answered = once(upload, 'response')
  const piece = Buffer.alloc(MB, 'x')
  for (let sent = 0; sent < UPLOAD_BYTES; sent += piece.length) {
    if (!upload.write(piece)) await once(upload, 'drain')
    if (sent % (10 * MB) === 0) mostBytes = Math.max(mostBytes, await residentBytes())
  }
  upload.end()
  const [response] = await answered
  expect(response.statusCode).toBe(200)
  expect(received).toEqual([UPLOAD_BYTES])
  expect(mostBytes - beforeBytes).toBeLessThan(UPLOAD_BYTES / 2)
})

it('a prompt of 500 kB arrives whole, and a slow upload does not delay other requests', async () => {
  const { url, received } = await start()
  const slow = new Talk(url)
  await slow.send(
    `POST /v1/files HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: ${2 * MB}\r\n\r\n${'x'.repeat(MB)}`,
  )
  const content = 'What do these words mean? '.repeat(20_000)
  const body = JSON.stringify({ model: 'gpt', messages: [{ role: 'user', content }] })
  const post = () =>
    fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
  const answers = await Promise.all([post(), post(), post()])
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
  expect(received).toEqual([body.length, body.length, body.length])
  expect(slow.statuses).toEqual([])
  await slow.send('x'.repeat(MB))
  await slow.receives(1)
  expect(slow.statuses).toEqual([200])
  await slow.send(get('/health/live'))
  await until('the connection is still used', () => slow.statuses.length === 2)
})
