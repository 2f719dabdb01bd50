import { describe, expect, it } from 'vitest'
import { addVendorHeaders, byName } from './headers.js'

describe('headers of a vendor', () => {
  it('may be called what objects have anyway', () => {
    const flat = ['constructor', 'a', '__proto__', 'b', 'tostring', 'c', 'set', 'd', 'set', 'e']
    const headers = byName(flat)
    expect(headers.constructor).toBe('a')
    expect(headers.valueOf).toBeUndefined()
    expect(headers.set).toEqual(['d', 'e'])
    const passed: string[] = []
    addVendorHeaders(passed, headers, [])
    expect(passed).toEqual(flat)
  })
})
