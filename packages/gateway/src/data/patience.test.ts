import type { Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { SERVER_LIMITS } from '../config/shapes/server-limits-shape.js'
import type { ClientRequest } from '../wire/client.js'
import { Patience } from './patience.js'
import { UnreadWatch } from './unread.js'

describe('a client that sends its body slowly', () => {
  const limits = { ...SERVER_LIMITS, bodyMs: 1_000, bodyBytesPerSecond: 100 }

  function slow() {
    const request = { complete: false, socket: { bytesRead: 5_000 } }
    const patience = new Patience(request as unknown as ClientRequest)
    const isOver = (nowMs: number, waiting = true) => patience.isOver(nowMs, waiting, limits)
    return { request, isOver }
  }

  it('a client has bodyMs, and a second more for each bodyBytesPerSecond it has sent', () => {
    const { request, isOver } = slow()
    expect([isOver(10_000), isOver(11_000), isOver(11_001)]).toEqual([false, false, true])
    request.socket.bytesRead += 200
    expect([isOver(13_000), isOver(13_001)]).toEqual([false, true])
  })

  it('time in which the client is not waited for does not count', () => {
    const { isOver } = slow()
    isOver(0)
    expect(isOver(900)).toBe(false)
    expect(isOver(5_900, false)).toBe(false)
    expect([isOver(6_000), isOver(6_001)]).toEqual([false, true])
  })

  it('a body that has arrived is never late', () => {
    const { request, isOver } = slow()
    isOver(0)
    request.complete = true
    expect(isOver(1_000_000)).toBe(false)
  })
})

describe('a client that does not read its answer', () => {
  function unread() {
    const socket = { writableLength: 10, bytesWritten: 100 }
    const watch = new UnreadWatch()
    const isStuck = (nowMs: number) => watch.isStuck(socket as Socket, nowMs, 1_000)
    return { socket, isStuck }
  }

  it('a connection is stuck when nothing has left for longer than unreadMs', () => {
    const { isStuck } = unread()
    expect([isStuck(0), isStuck(1_000), isStuck(1_001)]).toEqual([false, false, true])
  })

  it('every byte that leaves gives the client unreadMs again', () => {
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
