import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { FakeSocket, turns } from '../../test/fake-socket.js'
import { LINGER_BYTES, LINGER_MS, linger } from './linger.js'

describe('a connection that lingers after its last answer', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
  afterEach(() => void vi.useRealTimers())

  function lingering(): FakeSocket {
    const socket = new FakeSocket()
    socket.end('the answer')
    linger(socket.asSocket, socket)
    return socket
  }

  it('a client that goes on sending is disconnected after LINGER_MS', async () => {
    const socket = lingering()
    vi.advanceTimersByTime(LINGER_MS - 1)
    socket.push('more')
    await turns()
    expect(socket.destroyed).toBe(false)
    vi.advanceTimersByTime(1)
    expect(socket.destroyed).toBe(true)
  })

  it('a client that goes on sending is disconnected after LINGER_BYTES', async () => {
    const socket = lingering()
    const chunk = Buffer.alloc(LINGER_BYTES / 4)
    for (let i = 0; i < 4; i++) socket.push(chunk)
    await turns()
    expect(socket.destroyed).toBe(false)
    socket.push('x')
    await turns()
    expect(socket.destroyed).toBe(true)
  })

  it('a client that ends its side is disconnected at once, and no timer is left', async () => {
    const socket = lingering()
    socket.push(null)
    await turns(2)
    expect(socket.destroyed).toBe(true)
    const close = vi.spyOn(socket, 'destroySoon')
    vi.advanceTimersByTime(LINGER_MS)
    expect(close).not.toHaveBeenCalled()
  })
})
