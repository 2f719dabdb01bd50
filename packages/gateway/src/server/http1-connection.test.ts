import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import type { Exchange } from '../request/exchange.js'
import { Http1Connection } from './http1-connection.js'

function setup() {
  const socket = { bytesRead: 0, bytesWritten: 0, writableLength: 0, writableEnded: false }
  const limits = { headersMs: 1_000, unreadMs: 1_000 }
  const connection = new Http1Connection(socket as unknown as Http1Connection['socket'], limits, 0)
  return { socket, connection }
}

function answered() {
  const { socket, connection } = setup()
  socket.bytesRead = 100
  connection.noteEnd()
  return { socket, connection }
}

describe('a client that does not read its answer', () => {
  function unread() {
    const { socket, connection } = answered()
    Object.assign(socket, { writableLength: 10, bytesWritten: 100 })
    const isStuck = (nowMs: number) => connection.check(nowMs) === 'unread'
    return { socket, isStuck }
  }

  it('a connection is stuck when nothing was sent for longer than unreadMs', () => {
    const { isStuck } = unread()
    expect([isStuck(0), isStuck(1_000), isStuck(1_001)]).toEqual([false, false, true])
  })

  it('every byte that is sent gives the client unreadMs again', () => {
    const { socket, isStuck } = unread()
    isStuck(0)
    // More waits to be sent, and nothing has left.
    socket.writableLength += 50
    socket.bytesWritten += 50
    expect(isStuck(1_001)).toBe(true)
    socket.writableLength -= 1
    expect([isStuck(1_002), isStuck(2_002), isStuck(2_003)]).toEqual([false, false, true])
  })

  it('a connection with nothing to send is not stuck', () => {
    const { socket, isStuck } = unread()
    isStuck(0)
    socket.writableLength = 0
    expect(isStuck(5_000)).toBe(false)
    socket.writableLength = 10
    expect([isStuck(6_000), isStuck(7_001)]).toEqual([false, true])
  })
})

describe('a client that sends headers slowly', () => {
  it('the first headers must be complete within headersMs of the connection', () => {
    const { socket, connection } = setup()
    expect([connection.check(1_000), connection.check(1_001)]).toEqual([undefined, 'slow headers'])
    socket.bytesRead = 5
    expect(connection.check(1_001)).toBe('slow headers')
  })

  it('later headers must be complete within headersMs of their first byte', () => {
    const { socket, connection } = answered()
    expect(connection.check(50_000)).toBeUndefined()
    socket.bytesRead += 1
    expect([60_000, 61_000, 61_001].map((nowMs) => connection.check(nowMs))).toEqual([
      undefined,
      undefined,
      'slow headers',
    ])
  })

  it('the rest of a body whose request was answered is no headers, so the connection ends without a 408', () => {
    const { socket, connection } = answered()
    const request = { complete: false }
    connection.noteStart(request)
    connection.noteEnd()
    socket.bytesRead += 1
    expect([60_000, 61_001].map((nowMs) => connection.check(nowMs))).toEqual([undefined, 'idle'])
    request.complete = true
    expect(connection.check(61_001)).toBe('slow headers')
  })

  it('a connection that lingers after its last answer is left to the limits of lingering', () => {
    const { socket, connection } = answered()
    connection.noteStart({ complete: false })
    connection.noteEnd()
    socket.writableEnded = true
    socket.bytesRead += 1
    expect([60_000, 61_001].map((nowMs) => connection.check(nowMs))).toEqual([undefined, undefined])
  })

  it('a connection with an open request is not slow', () => {
    const { connection } = setup()
    connection.exchanges.add({} as Exchange)
    expect(connection.check(100_000)).toBeUndefined()
  })
})

describe('an idle connection', () => {
  it('a connection is idle without an open request, unsent bytes or the start of a request', () => {
    const { socket, connection } = answered()
    expect(connection.isIdle).toBe(true)
    socket.writableLength = 1
    expect(connection.isIdle).toBe(false)
    Object.assign(socket, { writableLength: 0, bytesRead: 101 })
    expect(connection.isIdle).toBe(false)
    connection.noteEnd()
    connection.exchanges.add({} as Exchange)
    expect(connection.isIdle).toBe(false)
  })
})

it('an idle connection does not keep its last request in memory', async () => {
  const { connection } = setup()
  const begin = () => {
    const request = { complete: true }
    connection.noteStart(request)
    connection.noteEnd()
    return new WeakRef(request)
  }
  const last = begin()
  // A reference that was created in this turn stays until its end.
  await new Promise((resolve) => setImmediate(resolve))
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  expect([connection.isIdle, last.deref()]).toEqual([true, undefined])
})
