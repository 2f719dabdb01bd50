import { describe, expect, it } from 'vitest'
import { BodyMemory } from './body.js'

describe('memory of request bodies', () => {
  it('bodies may take exactly maxTotalBytes together', () => {
    const memory = new BodyMemory()
    memory.take(60, 100)
    memory.take(40, 100)
    expect(memory.bytes).toBe(100)
  })

  it('a body beyond maxTotalBytes is refused, takes nothing, and fits once another one has ended', () => {
    const memory = new BodyMemory()
    memory.take(60, 100)
    const refusal = { status: 503, code: 'BODY_MEMORY_FULL', retryAfterMs: 1_000 }
    expect(() => memory.take(41, 100)).toThrow(expect.objectContaining(refusal))
    expect(memory.bytes).toBe(60)
    memory.giveBack(60)
    memory.take(41, 100)
    expect(memory.bytes).toBe(41)
  })
})
