import { describe, expect, it } from 'vitest'
import { SERVER_LIMITS } from '../../config/shapes/server-limits-shape.js'
import { SlowBody } from './slow-body.js'

describe('a client that sends its body slowly', () => {
  const limits = { ...SERVER_LIMITS, bodyMs: 1_000, bodyBytesPerSecond: 100 }

  function slow() {
    const request = { complete: false, receivedBytes: 5_000 }
    const patience = new SlowBody(request)
    const isOver = (nowMs: number, waiting = true) =>
      patience.isOver(nowMs, request.receivedBytes, waiting, limits)
    return { request, isOver }
  }

  it('a client has bodyMs, and a second more for each bodyBytesPerSecond it has sent', () => {
    const { request, isOver } = slow()
    expect([isOver(10_000), isOver(11_000), isOver(11_001)]).toEqual([false, false, true])
    request.receivedBytes += 200
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
