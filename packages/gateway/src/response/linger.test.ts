import { PassThrough } from 'node:stream'
import { createVirtualClock } from 'spillway/testing'
import { describe, expect, it, vi } from 'vitest'
import { FakeSocket, turns } from '../../test/fake-socket.js'
import { LINGER_BYTES, LINGER_MS, linger } from './linger.js'

describe('a connection that lingers after its last answer', () => {
  function lingering({ body = undefined as PassThrough | undefined } = {}) {
    const clock = createVirtualClock()
    const socket = new FakeSocket()
    socket.end('the answer')
    linger(socket.asSocket, body ?? socket, clock)
    return { socket, clock }
  }

  it('a client that goes on sending is disconnected after LINGER_MS', async () => {
    const { socket, clock } = lingering()
    await clock.advance(LINGER_MS - 1)
    socket.push('more')
    await turns()
    expect(socket.destroyed).toBe(false)
    await clock.advance(1)
    expect(socket.destroyed).toBe(true)
  })

  it('a client that goes on sending is disconnected after LINGER_BYTES', async () => {
    const { socket } = lingering()
    const chunk = Buffer.alloc(LINGER_BYTES / 4)
    for (let i = 0; i < 4; i++) socket.push(chunk)
    await turns()
    expect(socket.destroyed).toBe(false)
    socket.push('x')
    await turns()
    expect(socket.destroyed).toBe(true)
  })

  it('a client that goes on sending after a malformed chunk is disconnected after LINGER_BYTES', async () => {
    // No more of its body arrives, so only the connection shows what it sends.
    const { socket, clock } = lingering({ body: new PassThrough() })
    socket.bytesRead += LINGER_BYTES
    await clock.advance(1_000)
    expect(socket.destroyed).toBe(false)
    socket.bytesRead++
    await clock.advance(1_000)
    expect(socket.destroyed).toBe(true)
  })

  it('a client that ends its side is disconnected at once, and no timer is left', async () => {
    const { socket, clock } = lingering()
    socket.push(null)
    await turns(2)
    expect(socket.destroyed).toBe(true)
    const close = vi.spyOn(socket, 'destroySoon')
    await clock.advance(LINGER_MS)
    expect(close).not.toHaveBeenCalled()
  })
})
