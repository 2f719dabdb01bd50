import { describe, expect, it } from 'vitest'
import { addVendorHeaders, ForwardedHeaders, headerValue } from './headers.js'
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

describe('client request headers', () => {
  it('headers of the body in a spelling that the gateway does not read are not passed on', () => {
    const forwarded = new ForwardedHeaders({ own: new Set(), credentials: false })
    const raw = ['Content-Type', 'a', 'content_type', 'b', 'Content_Encoding', 'c', 'x_y', 'd']
    expect(forwarded.of(raw, undefined)).toEqual(['content-type', 'a', 'x_y', 'd'])
  })
})
