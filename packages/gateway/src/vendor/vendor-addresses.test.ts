import { describe, expect, it } from 'vitest'
import { fc } from '../../../spillway/test/fast-check.js'
import { VendorAddresses } from './vendor-addresses.js'

const GATEWAY = 'https://gateway.example'

describe('addresses in vendor answers', () => {
  it.each([
    // At the vendor's own origin.
    [
      'http://10.0.0.7:8000',
      undefined,
      'http://10.0.0.7:8000/v1/files/1?a=b#c',
      '/v1/files/1?a=b#c',
    ],
    ['http://10.0.0.7:8000', undefined, 'http://10.0.0.7:8000', '/'],
    ['http://10.0.0.7', undefined, 'HTTP://10.0.0.7:80/a', '/a'],
    ['http://10.0.0.7', undefined, 'http://user:secret@10.0.0.7/a', '/a'],
    ['http://10.0.0.7', undefined, '//10.0.0.7/a', '/a'],
    ['http://10.0.0.7', undefined, '/a?b', '/a?b'],
    ['http://10.0.0.7/openai', undefined, 'http://10.0.0.7/openai/v1/files', '/v1/files'],
    ['http://10.0.0.7/openai', undefined, '/openai/v1/files', '/v1/files'],
    ['http://10.0.0.7/openai', undefined, 'http://10.0.0.7/openai', '/'],
    ['http://10.0.0.7/openai', undefined, 'http://10.0.0.7/openai-2/a', '/openai-2/a'],
    // Unchanged, because nothing in it differs on the gateway.
    ['http://10.0.0.7', undefined, '/a/../b/caf\xc3\xa9', '/a/../b/caf\xc3\xa9'],
    // UTF-8 bytes, as headers are read.
    ['http://10.0.0.7', undefined, 'http://10.0.0.7/caf\xc3\xa9', '/caf%C3%A9'],
    ['http://10.0.0.7', '/weather', '/k\xc3\xb6ln', '/weather/k%C3%B6ln'],
    ['http://10.0.0.7', '/weather', 'http://10.0.0.7/berlin', '/weather/berlin'],
    ['http://10.0.0.7', '/weather', '/berlin', '/weather/berlin'],
    ['http://10.0.0.7/api', '/weather', 'http://10.0.0.7/api/berlin?c', '/weather/berlin?c'],
    // Would name another host without its own before it.
    ['http://10.0.0.7', undefined, 'http://10.0.0.7//evil.example/a', '/.//evil.example/a'],
    ['http://10.0.0.7/api', undefined, 'http://10.0.0.7/api//evil.example', '/.//evil.example'],
    ['http://10.0.0.7', undefined, 'http://10.0.0.7/\\evil.example/a', '/.//evil.example/a'],
  ])('vendor %s with prefix %s: address %s is %s', (url, prefix, address, expected) => {
    const here = new VendorAddresses(url, prefix).here(address)
    expect(here).toBe(expected)
    expect(new URL(here, GATEWAY).origin).toBe(GATEWAY)
  })

  it.each([
    'https://elsewhere.example/a',
    'https://10.0.0.7/a',
    'http://10.0.0.7:81/a',
    '//elsewhere.example/a',
    'berlin?c',
    '../berlin',
    '?c',
    '',
    'mailto:ann',
    'http://[bad',
  ])('the address %s of another origin stays unchanged', (address) => {
    expect(new VendorAddresses('http://10.0.0.7/api', '/weather').here(address)).toBe(address)
  })

  it('an address of the vendor keeps the client on the gateway, whatever its path', () => {
    const addresses = new VendorAddresses('http://10.0.0.7/api')
    // Characters with a meaning in a URL. `fc.webPath()` takes 1.6 s of CPU time to begin.
    const path = fc.string({ unit: fc.constantFrom(...'/\\.:@%?#;+ 2Fap\xe9') })
    fc.assert(
      fc.property(path, fc.string(), (begin, rest) => {
        const address = `http://10.0.0.7/${begin}${rest}`
        const isOwn = URL.canParse(address) && new URL(address).origin === 'http://10.0.0.7'
        fc.pre(isOwn)
        expect(new URL(addresses.here(address), GATEWAY).origin).toBe(GATEWAY)
      }),
    )
  })
})
