import { describe, expect, it } from 'vitest'
import { clientNetwork, createClientAddress } from './client-address.js'

const from = (trusted: number | string[], remote: string, forwardedFor?: string, bits = 64) =>
  createClientAddress(trusted, bits)(remote, forwardedFor)

describe('the address of a client', () => {
  it('is the other end of the connection, while nobody is trusted', () => {
    expect(from(0, '203.0.113.9', '1.1.1.1')).toBe('203.0.113.9')
    expect(from(0, '::ffff:203.0.113.9')).toBe('203.0.113.9')
  })

  it('is the last one that our proxies did not add themselves', () => {
    const ours = ['10.0.0.0/8']
    expect(from(ours, '10.0.0.1', '6.6.6.6, 203.0.113.9, 10.0.0.2')).toBe('203.0.113.9')
    expect(from(ours, '10.0.0.1', '10.0.0.3')).toBe('10.0.0.3')
    expect(from(ours, '10.0.0.1')).toBe('10.0.0.1')
  })

  it('is not what somebody says who is no proxy of ours', () => {
    expect(from(['10.0.0.0/8'], '203.0.113.9', '10.0.0.1, 1.1.1.1')).toBe('203.0.113.9')
  })

  it('is not what is no address', () => {
    expect(from(['10.0.0.0/8'], '10.0.0.1', '203.0.113.9, unknown')).toBe('10.0.0.1')
    expect(from(1, '10.0.0.1', 'localhost')).toBe('10.0.0.1')
  })

  it('is so many proxies away', () => {
    expect(from(1, '10.0.0.1', '6.6.6.6, 203.0.113.9')).toBe('203.0.113.9')
    expect(from(2, '10.0.0.1', '6.6.6.6, 203.0.113.9, 10.0.0.2')).toBe('203.0.113.9')
    // Somebody came past one of them: nothing in there was written by us.
    expect(from(2, '203.0.113.9', '6.6.6.6')).toBe('203.0.113.9')
  })

  it('has no port and no brackets', () => {
    expect(from(1, '10.0.0.1', '203.0.113.9:4711')).toBe('203.0.113.9')
    expect(from(1, '10.0.0.1', '[2001:db8::1]:443', 128)).toBe('2001:db8::1')
  })

  it('of IPv6 is a network, so that nobody has more than one of them', () => {
    expect(from(0, '2001:db8:1:2:3:4:5:6')).toBe('2001:db8:1:2::/64')
    expect(from(0, '2001:db8:1:2:ffff::')).toBe('2001:db8:1:2::/64')
    expect(from(0, '2001:db8::1')).toBe('2001:db8:0:0::/64')
    expect(from(0, '2001:db8:1:2ff::1', undefined, 56)).toBe('2001:db8:1:200::/56')
    expect(from(0, '::1', undefined, 128)).toBe('::1')
  })
})

it.each([
  '::ffff:10.0.0.1',
  '::FFFF:10.0.0.1',
  '::ffff:a00:1',
  '0:0:0:0:0:ffff:a00:1',
  '[::ffff:a00:1]:80',
])('an IPv4 address that is written as %s is counted as 10.0.0.1', (address) => {
  expect(clientNetwork(address)).toBe('10.0.0.1')
})
