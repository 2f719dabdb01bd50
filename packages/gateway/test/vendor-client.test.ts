// test-group: sockets, slow

import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as pauseMs } from 'node:timers/promises'
import { createServer as createSecureServer } from 'node:tls'
import { afterEach, describe, expect, it } from 'vitest'
import { until } from '../../spillway/test/streams/stream-kit.js'
import {
  VendorClient,
  type VendorHandler,
  type VendorRequest,
} from '../src/vendor/vendor-client.js'
import { neverConnected } from '../src/vendor/vendor-error.js'
import { CERTIFICATE } from './certificate.js'

const undo: (() => unknown)[] = []

afterEach(async () => {
  for (const each of undo.splice(0).reverse()) await each()
})

interface Vendor {
  readonly server: Server
  readonly sockets: Socket[]
  /** The text received on each connection so far. */
  readonly received: string[]
}

/** Starts a vendor that calls `reply` for every chunk it receives, which is usually one request. */
async function startVendor(
  reply: (socket: Socket, text: string) => void,
  secure = false,
): Promise<Vendor & { url: string }> {
  const vendor: Pick<Vendor, 'sockets' | 'received'> = { sockets: [], received: [] }
  const onSocket = (socket: Socket) => {
    const place = vendor.sockets.push(socket) - 1
    vendor.received.push('')
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      vendor.received[place] += bytes.toString('latin1')
      reply(socket, bytes.toString('latin1'))
    })
  }
  const server = secure ? createSecureServer(CERTIFICATE, onSocket) : createServer(onSocket)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  undo.push(() => {
    for (const socket of vendor.sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { ...vendor, server, url: `http${secure ? 's' : ''}://127.0.0.1:${port}` }
}

function openPool(url: string, connectMs = 5_000): VendorClient {
  const pool = new VendorClient(url, connectMs)
  undo.push(() => pool.destroy())
  return pool
}

function trustAnyCertificate(): void {
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
  undo.push(() => delete process.env.NODE_TLS_REJECT_UNAUTHORIZED)
}

const GET: VendorRequest = {
  method: 'GET',
  path: '/a?b=c',
  headers: ['x-name', 'v'],
  body: undefined,
}
const POST: VendorRequest = { ...GET, method: 'POST' }
const HELLO = 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello'

interface HandlerEvents {
  status?: number
  headers?: string[]
  body: string
  complete?: true
  error?: Error
  pieces: number
}

/** Sends a request and records the events of its handler. */
function ask(pool: VendorClient, request = GET, body?: Buffer, takes = () => true) {
  const result: HandlerEvents = { body: '', pieces: 0 }
  const handler: VendorHandler = {
    onHead: (status, headers) => void Object.assign(result, { status, headers }),
    onData(piece) {
      result.body += piece.toString('latin1')
      result.pieces++
      return takes()
    },
    onComplete: () => void Object.assign(result, { complete: true }),
    onError: (error) => void Object.assign(result, { error }),
  }
  const sent = pool.dispatch({ ...request, body }, handler)
  const over = until('it is over', () => result.complete === true || result.error !== undefined)
  // Some tests do not await the end, and some requests have none.
  over.catch(() => {})
  return { result, sent, over }
}

describe('request to a vendor', () => {
  it('a request is sent with its path, host, headers, length and body', async () => {
    const vendor = await startVendor((socket) => socket.write(HELLO))
    const pool = openPool(vendor.url)
    const { host } = new URL(vendor.url)
    await ask(pool).over
    const head = `/a?b=c HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\nx-name: v\r\n`
    expect(vendor.received).toEqual([`GET ${head}\r\n`])
    const { result, over } = ask(pool, POST, Buffer.from('question'))
    await over
    expect(vendor.received[0]).toContain(`POST ${head}content-length: 8\r\n\r\nquestion`)
    expect(result).toMatchObject({ status: 200, body: 'hello', headers: ['content-length', '5'] })
    await ask(pool, POST).over
    expect(vendor.received[0]).toContain('x-name: v\r\ncontent-length: 0\r\n\r\n')
  })

  it('a request of any size arrives completely', async () => {
    const vendor = await startVendor((socket, text) => {
      if (text.endsWith('!')) socket.write(HELLO)
    })
    const body = Buffer.from(`${'x'.repeat(3_000_000)}!`)
    const { result, over } = ask(openPool(vendor.url), POST, body)
    await over
    expect(result).toMatchObject({ complete: true })
    expect(vendor.received[0]?.length).toBeGreaterThan(body.length)
  })

  it.each([
    ['a header with a line break', { headers: ['x', 'a\r\nhost: b'] }],
    ['a name with a line break', { headers: ['x: a\r\nhost', 'b'] }],
    ['a path with a space', { path: '/a HTTP/1.1' }],
    ['a path with a line break', { path: '/a\r\nx: y' }],
  ])('a request with %s is rejected and costs no connection', async (_, odd) => {
    const vendor = await startVendor((socket) => socket.write(HELLO))
    const pool = openPool(vendor.url)
    await ask(pool).over
    expect(() => ask(pool, { ...GET, ...odd })).toThrow(TypeError)
    await ask(pool).over
    expect(vendor.sockets).toHaveLength(1)
  })
})

describe('vendor connection', () => {
  it('connections are reused, and there are only as many as concurrent requests', async () => {
    const vendor = await startVendor((socket) => setTimeout(() => socket.write(HELLO), 20))
    const pool = openPool(vendor.url)
    await Promise.all([ask(pool).over, ask(pool).over])
    await Promise.all([ask(pool).over, ask(pool).over])
    expect(vendor.sockets).toHaveLength(2)
    expect(pool.counts).toMatchObject({ connected: 2, free: 2 })
  })

  it.each([
    [
      'sends Connection: close',
      'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n',
    ],
    [
      'announces a short keep-alive',
      'HTTP/1.1 200 OK\r\nkeep-alive: timeout=1\r\ncontent-length: 0\r\n\r\n',
    ],
  ])('a connection is not reused if the vendor %s', async (_, reply) => {
    const vendor = await startVendor((socket) => socket.write(reply))
    const pool = openPool(vendor.url)
    await ask(pool).over
    await ask(pool).over
    expect(vendor.sockets).toHaveLength(2)
    await until('they are closed', () => pool.counts.connected === 0)
  })

  it('an idle connection that the vendor closes is dropped from the pool', async () => {
    const vendor = await startVendor((socket) => socket.write(HELLO))
    const pool = openPool(vendor.url)
    await ask(pool).over
    vendor.sockets[0]?.end()
    await until('it is gone', () => pool.counts.connected === 0)
    const { result, over } = ask(pool)
    await over
    expect(result).toMatchObject({ complete: true })
  })

  it('a connection on which the vendor sends unrequested data is closed', async () => {
    const vendor = await startVendor((socket) => socket.write(HELLO))
    const pool = openPool(vendor.url)
    await ask(pool).over
    expect(pool.counts.connected).toBe(1)
    vendor.sockets[0]?.write(HELLO)
    await expect.poll(() => pool.counts.connected).toBe(0)
  })

  it('an idle connection is closed after a while', async () => {
    const vendor = await startVendor((socket) => socket.write(HELLO))
    const pool = openPool(vendor.url)
    await ask(pool).over
    expect(pool.counts.connected).toBe(1)
    await expect.poll(() => pool.counts.connected).toBe(0)
  })

  it('a connection is not reused before its whole request was sent', async () => {
    // This vendor answers at once and stops reading.
    const vendor = await startVendor((socket) => {
      socket.pause()
      socket.write(HELLO)
    })
    const pool = openPool(vendor.url)
    const { result, over } = ask(pool, POST, Buffer.alloc(20_000_000))
    await over
    expect(result).toMatchObject({ body: 'hello', complete: true })
    await until('it is closed', () => pool.counts.connected === 0)
  })
})

describe('answer of a vendor', () => {
  it('an answer without a length ends when its connection closes', async () => {
    const vendor = await startVendor((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nhello'))
    const { result, over } = ask(openPool(vendor.url))
    await over
    expect(result).toMatchObject({ body: 'hello', complete: true })
  })

  it.each([
    ['before it began', ''],
    ['in its head', 'HTTP/1.1 200 OK\r\nx: '],
    ['in its body', 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello'],
    ['between its chunks', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n'],
  ])('an answer that breaks off %s is an error and never complete', async (_, text) => {
    const vendor = await startVendor((socket) => socket.end(text))
    const { result, over } = ask(openPool(vendor.url))
    await over
    expect(result.complete).toBeUndefined()
    expect(result.error).toMatchObject({ code: 'CONNECTION_CLOSED' })
    expect(neverConnected(result.error)).toBe(false)
  })

  it('an answer whose connection is reset is an error', async () => {
    const vendor = await startVendor((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello')
      setTimeout(() => socket.resetAndDestroy(), 20)
    })
    const { result, over } = ask(openPool(vendor.url))
    await over
    expect(result).toMatchObject({ body: 'hello', error: { code: 'ECONNRESET' } })
  })

  it('a header that is named __proto__ is renamed, because it would be the prototype of an object', async () => {
    const vendor = await startVendor((socket) =>
      socket.write('HTTP/1.1 200 OK\r\n__proto__: x\r\ncontent-length: 2\r\n\r\nhi'),
    )
    const { result, over } = ask(openPool(vendor.url))
    await over
    expect(result).toMatchObject({ body: 'hi', complete: true })
    expect(result.headers).toEqual(['-proto-', 'x', 'content-length', '2'])
  })

  it.each([
    ['two transfer-encodings', 'transfer-encoding: chunked\r\ntransfer-encoding: chunked'],
    ['an unknown transfer-encoding', 'transfer-encoding: gzip'],
    ['a transfer-encoding and a length', 'transfer-encoding: chunked\r\ncontent-length: 2'],
  ])('an answer with %s is malformed and never complete', async (_, headers) => {
    const vendor = await startVendor((socket) =>
      socket.end(`HTTP/1.1 200 OK\r\n${headers}\r\n\r\n2\r\nhi\r\n0\r\n\r\n`),
    )
    const { result, over } = ask(openPool(vendor.url))
    await over
    expect(result.complete).toBeUndefined()
    expect(result.error).toMatchObject({ code: 'MALFORMED_ANSWER' })
  })

  it('an answer that is not HTTP closes its connection', async () => {
    const vendor = await startVendor((socket) => socket.write('220 mail.example ESMTP\r\n\r\n'))
    const pool = openPool(vendor.url)
    const { result, over } = ask(pool)
    await over
    expect(result.error).toMatchObject({ code: 'MALFORMED_ANSWER' })
    await until('it is closed', () => pool.counts.connected === 0)
  })

  it('concurrent answers keep their bytes over several connections', async () => {
    const vendor = await startVendor((socket, text) => {
      const letter = /\/(\w)/.exec(text)?.[1] ?? '?'
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n${letter.repeat(500)}`)
      setTimeout(() => socket.write(letter.repeat(500)), 5)
    })
    const pool = openPool(vendor.url)
    const letters = [...'abcdefghij']
    const all = letters.map((letter) => ask(pool, { ...GET, path: `/${letter}` }))
    await Promise.all(all.map(({ over }) => over))
    expect(all.map(({ result }) => result.body)).toEqual(letters.map((each) => each.repeat(1_000)))
  })

  it('an answer that is not read waits at the vendor and continues later', async () => {
    const bytes = 30_000_000
    let sentBytes = 0
    const vendor = await startVendor((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${bytes}\r\n\r\n`)
      const piece = Buffer.alloc(100_000, 'x')
      const more = () => {
        while (sentBytes < bytes) {
          sentBytes += piece.length
          if (!socket.write(piece)) return void socket.once('drain', more)
        }
      }
      more()
    })
    let open = false
    const { result, sent, over } = ask(openPool(vendor.url), GET, undefined, () => open)
    await until('some has come', () => result.pieces > 0)
    await pauseMs(200)
    expect(result.body.length).toBeLessThan(200_000)
    expect(sentBytes).toBeLessThan(bytes)
    open = true
    sent.resume()
    await over
    expect(result).toMatchObject({ complete: true })
    expect(result.body.length).toBe(bytes)
  })
})

describe('aborted request', () => {
  it('a request aborted before its connection is open is not sent', async () => {
    const vendor = await startVendor(() => {})
    const pool = openPool(vendor.url)
    const { result, sent } = ask(pool)
    sent.abort(new Error('enough'))
    await until('it is closed', () => pool.counts.connected === 0)
    expect(result).toEqual({ body: '', pieces: 0 })
    expect(vendor.received.join('')).toBe('')
  })

  it('a request aborted before its connection is open is never sent later', async () => {
    const vendor = await startVendor((socket) => socket.write(HELLO))
    const pool = openPool(vendor.url)
    const { result, sent } = ask(pool, { ...GET, path: '/unwanted' })
    sent.abort(new Error('enough'))
    await ask(pool).over
    expect(result).toEqual({ body: '', pieces: 0 })
    expect(vendor.received.join('')).not.toContain('/unwanted')
  })

  it('a request aborted while the vendor works closes its connection and reports nothing more', async () => {
    const vendor = await startVendor(() => {})
    const pool = openPool(vendor.url)
    const { result, sent } = ask(pool)
    await until('it is there', () => vendor.received[0] !== undefined && vendor.received[0] !== '')
    sent.abort(new Error('enough'))
    await once(vendor.sockets[0] as Socket, 'close')
    await until('it is closed', () => pool.counts.connected === 0)
    expect(result).toEqual({ body: '', pieces: 0 })
  })

  it('an aborted request delivers no more data, even if more was read', async () => {
    const chunks = 'a\r\n0123456789\r\n'.repeat(20)
    const vendor = await startVendor((socket) =>
      socket.write(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunks}`),
    )
    const pool = openPool(vendor.url)
    const { result, sent } = ask(pool, GET, undefined, () => {
      sent.abort(new Error('enough'))
      return true
    })
    await until('it is closed', () => pool.counts.connected === 0 && result.pieces > 0)
    expect(result).toMatchObject({ status: 200, body: '0123456789', pieces: 1 })
    expect(result.error).toBeUndefined()
  })

  it('aborting a finished request does not affect the next one on its connection', async () => {
    const vendor = await startVendor((socket) => setTimeout(() => socket.write(HELLO), 20))
    const pool = openPool(vendor.url)
    const first = ask(pool)
    await first.over
    const second = ask(pool)
    first.sent.abort(new Error('too late'))
    first.sent.resume()
    await second.over
    expect(second.result).toMatchObject({ body: 'hello', complete: true })
    expect(vendor.sockets).toHaveLength(1)
  })
})

describe('vendor with several addresses', () => {
  it.each([false, true])('the address that answers is used, with TLS: %s', async (secure) => {
    if (secure) trustAnyCertificate()
    const vendor = await startVendor((socket) => socket.write(HELLO), secure)
    const { result, over } = ask(openPool(vendor.url.replace('127.0.0.1', 'localhost')))
    await over
    expect(result).toMatchObject({ body: 'hello', complete: true })
  })
})

describe('unreachable vendor', () => {
  it('a refused connection is reported as ECONNREFUSED and unsent', async () => {
    const vendor = await startVendor(() => {})
    vendor.server.close()
    const { result, over } = ask(openPool(vendor.url))
    await over
    expect(result.error).toMatchObject({ code: 'ECONNREFUSED' })
    expect(neverConnected(result.error)).toBe(true)
  })

  it('a connection that is not open after connectMs is given up', async () => {
    // This vendor accepts the connection and never starts the TLS handshake.
    const vendor = await startVendor(() => {})
    const pool = openPool(vendor.url.replace('http', 'https'), 100)
    const { result, over } = ask(pool)
    await over
    expect(result.error).toMatchObject({ code: 'CONNECT_TIMEOUT' })
    expect(neverConnected(result.error)).toBe(true)
    await until('it is closed', () => pool.counts.connected === 0)
  })
})

describe('over TLS', () => {
  it('nothing is sent to a server whose certificate is not trusted', async () => {
    const vendor = await startVendor((socket) => socket.write(HELLO), true)
    const { result, over } = ask(openPool(vendor.url))
    await over
    expect(result.error).toMatchObject({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
    expect(neverConnected(result.error)).toBe(true)
    expect(vendor.received.join('')).toBe('')
  })

  it('a trusted TLS connection is reused like a plain one', async () => {
    trustAnyCertificate()
    const vendor = await startVendor((socket) => socket.write(HELLO), true)
    const pool = openPool(vendor.url)
    for (let i = 0; i < 3; i++) {
      const { result, over } = ask(pool, POST, Buffer.from('question'))
      await over
      expect(result).toMatchObject({ body: 'hello', complete: true })
    }
    expect(vendor.sockets).toHaveLength(1)
  })
})

describe('closing all connections', () => {
  it('destroy() fails pending requests and new ones', async () => {
    const vendor = await startVendor(() => {})
    const pool = openPool(vendor.url)
    const { result } = ask(pool)
    await until('it is there', () => vendor.sockets.length === 1)
    await pool.destroy()
    await until('it is over', () => result.error !== undefined)
    expect(result.error).toMatchObject({ code: 'CONNECTIONS_CLOSED' })
    const later = ask(pool)
    await later.over
    expect(later.result.error).toMatchObject({ code: 'CONNECTIONS_CLOSED' })
  })
})
