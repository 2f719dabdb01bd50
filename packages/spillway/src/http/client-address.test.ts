import { describe, expect, it } from 'vitest'
import { createClientAddress } from './client-address.js'

const from = (trusted: number | string[], remote: string, forwardedFor?: string, bits = 64) =>
  createClientAddress(trusted, bits)(remote, forwardedFor)

describe('client address', () => {
  it('without trusted proxies the client address is that of the connection', () => {
    expect(from(0, '203.0.113.9', '1.1.1.1')).toBe('203.0.113.9')
    expect(from(0, '::ffff:203.0.113.9')).toBe('203.0.113.9')
  })

  it('client address is the last one that no trusted proxy added', () => {
    const ours = ['10.0.0.0/8']
    expect(from(ours, '10.0.0.1', '6.6.6.6, 203.0.113.9, 10.0.0.2')).toBe('203.0.113.9')
    expect(from(ours, '10.0.0.1', '10.0.0.3')).toBe('10.0.0.3')
    expect(from(ours, '10.0.0.1')).toBe('10.0.0.1')
  })

  it('X-Forwarded-For of an untrusted peer is ignored', () => {
    expect(from(['10.0.0.0/8'], '203.0.113.9', '10.0.0.1, 1.1.1.1')).toBe('203.0.113.9')
  })

  it('invalid addresses in X-Forwarded-For are ignored', () => {
    expect(from(['10.0.0.0/8'], '10.0.0.1', '203.0.113.9, unknown')).toBe('10.0.0.1')
    expect(from(1, '10.0.0.1', 'localhost')).toBe('10.0.0.1')
  })

  it('a number as trustedProxies counts the proxies', () => {
    expect(from(1, '10.0.0.1', '6.6.6.6, 203.0.113.9')).toBe('203.0.113.9')
    expect(from(2, '10.0.0.1', '6.6.6.6, 203.0.113.9, 10.0.0.2')).toBe('203.0.113.9')
    // The request bypassed a proxy, so no part of the header is trustworthy.
    expect(from(2, '203.0.113.9', '6.6.6.6')).toBe('203.0.113.9')
  })

  it('client address has no port and no brackets', () => {
    expect(from(1, '10.0.0.1', '203.0.113.9:4711')).toBe('203.0.113.9')
    expect(from(1, '10.0.0.1', '[2001:db8::1]:443', 128)).toBe('2001:db8::1')
  })

  it('an IPv6 client is identified by its network, so it cannot use many addresses', () => {
    expect(from(0, '2001:db8:1:2:3:4:5:6')).toBe('2001:db8:1:2::/64')
    expect(from(0, '2001:db8:1:2:ffff::')).toBe('2001:db8:1:2::/64')
    expect(from(0, '2001:db8::1')).toBe('2001:db8:0:0::/64')
    expect(from(0, '2001:db8:1:2ff::1', undefined, 56)).toBe('2001:db8:1:200::/56')
    expect(from(0, '::1', undefined, 128)).toBe('::1')
  })
})
