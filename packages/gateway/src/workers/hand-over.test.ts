import type { Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { FakeSocket, turns } from '../../test/fake-socket.js'
import { receive } from './hand-over.js'

const TO = { port: 'data', isLast: false } as const

describe('connection that a worker receives', () => {
  it('a connection that its client has reset does not end the worker that takes it', async () => {
    const socket = new FakeSocket()
    expect(receive(TO, socket.asSocket, () => true)).toBe(true)
    // Without a listener for it, an error of a socket ends the process.
    socket.destroy(new Error('read ECONNRESET'))
    await turns()
    expect(socket.destroyed).toBe(true)
  })

  it('a worker that refuses a connection closes its copy before it can read from it', () => {
    const socket = new FakeSocket()
    expect(receive(TO, socket.asSocket, () => false)).toBe(false)
    expect(socket.destroyed).toBe(true)
  })

  it('a worker that has not started refuses a connection and closes its copy', () => {
    const socket = new FakeSocket()
    expect(receive(TO, socket.asSocket, undefined)).toBe(false)
    expect(socket.destroyed).toBe(true)
  })

  it('a worker that takes a connection leaves it open', () => {
    const socket = new FakeSocket()
    const served: Socket[] = []
    const serve = (_: unknown, each: Socket) => served.push(each) > 0
    expect(receive(TO, socket.asSocket, serve)).toBe(true)
    expect([served, socket.destroyed]).toEqual([[socket], false])
  })
})
