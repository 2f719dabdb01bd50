import { describe, expect, it } from 'vitest'
import { slotOf } from './slot.js'

describe('slotOf', () => {
  it.each([
    ['123456789', 0x31c3],
    ['foo', 12_182],
    ['', 0],
    ['sw1:{openai}:l:default', slotOf('openai')],
    ['{user1000}.following', slotOf('user1000')],
    ['foo{}{bar}', slotOf('foo{}{bar}')],
    ['foo{{bar}}zap', slotOf('{bar')],
    ['foo{bar}{zap}', slotOf('bar')],
    ['foo{bar', slotOf('foo{bar')],
  ])('slotOf computes the slot of %s', (key, slot) => {
    expect(slotOf(key)).toBe(slot)
  })
})
