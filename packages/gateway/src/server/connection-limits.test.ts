import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { createVirtualClock } from 'spillway/testing'
import { expect, it, onTestFinished } from 'vitest'
import { ConnectionLimits } from './connection-limits.js'

function limit(connections: number, connectionsPerAddress: number): ConnectionLimits {
  const limits = new ConnectionLimits(
    { connections, connectionsPerAddress, headersMs: 1_000 },
    () => {},
    createVirtualClock(),
  )
  onTestFinished(() => limits.close())
  return limits
}

class FakeSocket extends EventEmitter {
  destroyed = false

  constructor(readonly remoteAddress?: string) {
    super()
  }

  destroy(): void {
    this.destroyed = true
    this.emit('close')
  }
}

const socketFrom = (address?: string) => new FakeSocket(address) as unknown as Socket

it('connections from one address are limited, and a closed one makes room', () => {
  const limits = limit(10, 2)
  const [first, second, third] = ['10.0.0.1', '10.0.0.1', '10.0.0.1'].map(socketFrom) as [
    Socket,
    Socket,
    Socket,
  ]
  expect([first, second, third].map((socket) => limits.admit(socket))).toEqual([true, true, false])
  expect(third.destroyed).toBe(true)
  expect(limits.admit(socketFrom('10.0.0.2'))).toBe(true)
  first.destroy()
  expect(limits.admit(socketFrom('10.0.0.1'))).toBe(true)
  expect(limits.refused).toBe(1)
})

it('connections to a Unix socket have no address and only share the limit of all connections', () => {
  const limits = limit(3, 1)
  const admitted = Array.from({ length: 4 }, () => limits.admit(socketFrom()))
  expect(admitted).toEqual([true, true, true, false])
})
