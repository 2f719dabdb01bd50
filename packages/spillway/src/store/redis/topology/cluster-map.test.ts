import { describe, expect, it } from 'vitest'
import { readClusterSlots, readRedirect } from './cluster-map.js'

describe('cluster map', () => {
  it('cluster map lists masters and replicas and fills in missing hosts', () => {
    const map = readClusterSlots(
      [
        [0, 99, ['10.0.0.1', 7000, 'id'], ['10.0.0.2', 7001, 'id']],
        [100, 16383, ['', 7002, 'id'], [null, 7003, 'id']],
      ],
      'seed',
    )
    expect([...map.masters]).toEqual(['10.0.0.1:7000', 'seed:7002'])
    expect([...map.nodes]).toEqual(['10.0.0.1:7000', '10.0.0.2:7001', 'seed:7002', 'seed:7003'])
    expect(map.ranges[1]).toEqual({ from: 100, to: 16383, master: 'seed:7002' })
  })

  it.each([
    ['MOVED 3999 10.0.0.1:6381', { slot: 3999, node: '10.0.0.1:6381', asking: false }],
    ['ASK 3999 ::1:6381', { slot: 3999, node: '::1:6381', asking: true }],
    ['MOVED 12 :6381', { slot: 12, node: ':6381', asking: false }],
    ['TRYAGAIN Multiple keys', undefined],
    ['ERR MOVED 3999 10.0.0.1:6381', undefined],
  ])('readRedirect reads %s', (message, told) => {
    expect(readRedirect(message)).toEqual(told)
  })
})
