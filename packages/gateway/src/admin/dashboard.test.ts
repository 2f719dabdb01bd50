import { describe, expect, it } from 'vitest'
import { lookRule } from './dashboard.js'

const from = (remoteAddress: string) => ({ socket: { remoteAddress } })

describe('who may look at the dashboard of a gateway', () => {
  it('is whoever reaches it, where the port is open to this machine only', () => {
    const may = lookRule({ host: '127.0.0.1', token: undefined })
    expect(may(from('127.0.0.1'))).toBe(true)
  })

  it('is this machine, where the port is open to others and there is no token', () => {
    const may = lookRule({ host: '0.0.0.0', token: undefined })
    for (const near of ['127.0.0.1', '::1', '::ffff:127.0.0.1']) expect(may(from(near))).toBe(true)
    for (const far of ['10.0.0.7', '::ffff:10.0.0.7', '']) {
      expect(may(from(far))).toContain('set admin.token')
    }
  })

  it('is decided by the dashboard itself, where there is a token', () => {
    const may = lookRule({ host: '0.0.0.0', token: 'a-token-of-an-operator' })
    expect(may(from('10.0.0.7'))).toBe(true)
  })
})
