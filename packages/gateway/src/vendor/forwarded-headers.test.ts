import { describe, expect, it } from 'vitest'
import { addVendorHeaders, ForwardedHeaders, headerValue } from './forwarded-headers.js'
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

  it.each([
    ...['set-cookie', 'transfer-encoding', 'alt-svc', 'strict-transport-security', 'via'],
    ...['x-sendfile', 'x-accel-redirect', 'x-forwarded-for', 'x-envoy-a', 'spillway-decision'],
  ])('the vendor header %s does not reach the client', (name) => {
    for (let times = 0; times < 2; times++) {
      const passed = ['x-ours', '0']
      addVendorHeaders(passed, [name, 'a', 'x-kept', 'b'], [], ADDRESSES)
      expect(passed).toEqual(['x-ours', '0', 'x-kept', 'b'])
    }
  })

  it('headers that the gateway sets itself are not taken from the vendor', () => {
    const passed: string[] = []
    addVendorHeaders(passed, ['ratelimit', 'a', 'x-kept', 'b'], ['ratelimit'], ADDRESSES)
    expect(passed).toEqual(['x-kept', 'b'])
  })

  it.each(['location', 'content-location', 'operation-location'])(
    'an address of the vendor in %s becomes one of the gateway',
    (name) => {
      const address = 'http://vendor/v1/jobs/1?a=b'
      const passed: string[] = []
      addVendorHeaders(passed, [name, address, 'link', address], [], ADDRESSES)
      expect(passed).toEqual([name, '/v1/jobs/1?a=b', 'link', address])
    },
  )
})

describe('client request headers', () => {
  it('headers of the body in a spelling that the gateway does not read are not passed on', () => {
    const forwarded = new ForwardedHeaders({
      own: new Set(),
      credentials: false,
      compression: false,
    })
    const raw = ['Content-Type', 'a', 'content_type', 'b', 'Content_Encoding', 'c', 'x_y', 'd']
    expect(forwarded.of(raw, undefined)).toEqual(['content-type', 'a', 'x_y', 'd'])
  })

  const forward = (raw: string[], options = {}, connection?: string) =>
    new ForwardedHeaders({ own: new Set(), credentials: false, compression: false, ...options }).of(
      raw,
      connection,
    )

  it.each([
    ...['Host', 'Content-Length', 'Expect', 'Cookie', 'Accept-Encoding', 'Connection', 'TE'],
    ...['Transfer-Encoding', 'Upgrade', 'Keep-Alive', 'Proxy-Authorization', 'Trailer'],
    ...['X-Forwarded-For', 'X_Forwarded_For', 'X-Forwarded', 'Forwarded', 'Via', 'X-Real-IP'],
    ...['X-HTTP-Method-Override', 'X-Original-URL', 'X-Envoy-Internal', 'Proxy', 'Client_IP'],
    ...['Spillway-User', 'Spillway_Priority', 'spillway-anything'],
  ])('the client header %s does not reach the vendor', (name) => {
    expect(forward([name, 'a', 'X-Kept', 'b'])).toEqual(['x-kept', 'b'])
  })

  it('headers named in Connection stop at the gateway, in any case', () => {
    const raw = ['X-One', '1', 'X-Two', '2', 'X-Three', '3']
    const all = ['x-one', '1', 'x-two', '2', 'x-three', '3']
    expect(forward(raw, {}, 'close, X-One ,x-TWO')).toEqual(['x-three', '3'])
    expect(forward(raw, {}, 'Keep-Alive')).toEqual(all)
    expect(forward(raw, {}, 'close')).toEqual(all)
    // Only this request is concerned, although names are remembered.
    const headers = new ForwardedHeaders({ own: new Set(), credentials: false, compression: false })
    expect(headers.of(raw, 'x-one, x-two')).toEqual(['x-three', '3'])
    expect(headers.of(raw, undefined)).toEqual(all)
  })

  it('keys of the client are forwarded only where its own key is used', () => {
    const raw = ['Authorization', 'Bearer a', 'X-Api-Key', 'b', 'X_Api_Key', 'c']
    expect(forward(raw)).toEqual([])
    const kept = ['authorization', 'Bearer a', 'x-api-key', 'b', 'x_api_key', 'c']
    expect(forward(raw, { credentials: true, compression: false })).toEqual(kept)
  })

  it('headers that the gateway sets itself are not taken from the client, in either spelling', () => {
    const own = new Set(['x-vendor-team', 'x_other'])
    const raw = ['X-Vendor-Team', 'a', 'X_Vendor_Team', 'b', 'X_Other', 'c', 'X-Else', 'd']
    expect(forward(raw, { own })).toEqual(['x-else', 'd'])
  })

  it('a header name of any length is treated in the same way', () => {
    const long = `X-${'a'.repeat(300)}`
    const secret = `Spillway-${'a'.repeat(300)}`
    const headers = new ForwardedHeaders({ own: new Set(), credentials: false, compression: false })
    for (let times = 0; times < 2; times++) {
      expect(headers.of([long, '1', secret, '2'], undefined)).toEqual([long.toLowerCase(), '1'])
    }
  })

  it('more header names than are remembered do not change what is forwarded', () => {
    const headers = new ForwardedHeaders({ own: new Set(), credentials: false, compression: false })
    for (let i = 0; i < 1_200; i++) {
      expect(headers.of([`X-${i}`, 'a', 'Cookie', 'b'], undefined)).toEqual([`x-${i}`, 'a'])
    }
  })
})
