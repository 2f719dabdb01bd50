import { describe, expect, it } from 'vitest'
import { addVendorHeaders, headerValue } from './headers.js'
import { VendorAddresses } from './vendor-addresses.js'

const ADDRESSES = new VendorAddresses('http://vendor')

describe('vendor response headers', () => {
  it('header names may be those of object properties', () => {
    const flat = ['constructor', 'a', '__proto__', 'b', 'tostring', 'c', 'set', 'd', 'set', 'e']
    expect(headerValue(flat, 'constructor')).toBe('a')
    expect(headerValue(flat, 'valueOf')).toBeUndefined()
    expect(headerValue(flat, 'set')).toBe('d, e')
    const passed: string[] = []
    addVendorHeaders(passed, flat, [], ADDRESSES)
    expect(passed).toEqual(flat)
  })

  it('headers named in Connection are not passed on, even if it occurs twice', () => {
    const flat = [
      'connection',
      'x-one',
      'x-one',
      '1',
      'x-two',
      '2',
      'connection',
      'X-Two',
      'x',
      '3',
    ]
    const passed: string[] = []
    addVendorHeaders(passed, flat, [], ADDRESSES)
    expect(passed).toEqual(['x', '3'])
  })
})
