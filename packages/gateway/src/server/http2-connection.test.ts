import { EventEmitter } from 'node:events'
import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import { createVirtualClock } from 'spillway/testing'
import { describe, expect, it } from 'vitest'
import type { Exchange } from '../request/exchange.js'
import { Http2Connection } from './http2-connection.js'

function setup() {
  const ended: string[] = []
  const session = { destroy: () => ended.push('session'), close() {} }
  const socket = Object.assign(new EventEmitter(), {
    destroy() {
      ended.push('socket')
    },
  })
  const limits = { headersMs: 1_000, idleMs: 1_000, unreadMs: 1_000 }
  const clock = createVirtualClock()
  const connection = new Http2Connection(
    session as unknown as ServerHttp2Session,
    socket as unknown as Socket,
    limits,
    clock,
  )
  return { connection, socket, ended, clock }
}

describe('the end of a connection', () => {
  it('a client that does not read the end of its session loses the connection', async () => {
    const { connection, ended, clock } = setup()
    connection.destroy()
    expect(ended).toEqual(['session'])
    await clock.advance(5_000)
    expect(ended).toEqual(['session', 'socket'])
  })

  it('no timer is left of a connection that was closed', async () => {
    const { connection, socket, ended, clock } = setup()
    connection.destroy()
    socket.emit('close')
    await clock.advance(60_000)
    expect(ended).toEqual(['session'])
  })
})

describe('a client that reads its answer slowly', () => {
  function unread() {
    const { connection } = setup()
    const exchange = { sentBytes: 0, unsentBytes: 10, isCut: false, disconnect: () => {} }
    exchange.disconnect = () => {
      exchange.isCut = true
    }
    connection.exchanges.add(exchange as unknown as Exchange)
    return { connection, exchange }
  }

  it('an answer of which bytes leave is not cut, even if as many wait as before', () => {
    const { connection, exchange } = unread()
    for (let nowMs = 0; nowMs <= 5_000; nowMs += 500) {
      exchange.sentBytes += 1
      connection.check(nowMs)
    }
    expect(exchange.isCut).toBe(false)
  })

  it('an answer of which nothing leaves for longer than unreadMs is cut', () => {
    const { connection, exchange } = unread()
    connection.check(0)
    // More waits to be sent, and nothing has left.
    exchange.unsentBytes += 50
    connection.check(1_000)
    expect(exchange.isCut).toBe(false)
    connection.check(1_001)
    expect(exchange.isCut).toBe(true)
  })
})
