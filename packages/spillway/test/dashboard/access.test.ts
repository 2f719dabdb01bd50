import type { IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import { Access } from '../../src/http/dashboard/access.js'

const TOKEN = 'a-token-of-some-length'

function from(remoteAddress: string, headers: Record<string, string> = {}): IncomingMessage {
  return { socket: { remoteAddress }, headers } as unknown as IncomingMessage
}

const LOCAL = { host: 'localhost:8081', origin: 'http://localhost:8081' }
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

describe('acting without a configured token', () => {
  const access = new Access({ token: undefined, hosts: [] })
  const denied = (request: IncomingMessage) => access.act(request)?.status

  it.each(['127.0.0.1', '::1', '::ffff:127.0.0.1', '127.8.9.10'])(
    'is possible from %s',
    (address) => {
      expect(denied(from(address, LOCAL))).toBeUndefined()
      expect(access.acts(from(address, LOCAL))).toBe('open')
    },
  )

  it.each([
    ['another machine', from('10.0.0.7', LOCAL)],
    [
      'a name that was bound to this machine',
      from('127.0.0.1', { host: 'evil.example', origin: 'http://evil.example' }),
    ],
    ['a page of another origin', from('127.0.0.1', { ...LOCAL, origin: 'http://evil.example' })],
    ['a page of another port', from('127.0.0.1', { ...LOCAL, origin: 'http://localhost:3000' })],
    ['a page without an origin', from('127.0.0.1', { host: 'localhost', origin: 'null' })],
    ['nowhere', from('127.0.0.1', { host: 'localhost:8081' })],
    ['another site', from('127.0.0.1', { ...LOCAL, 'sec-fetch-site': 'cross-site' })],
    [
      'behind a proxy on this machine',
      from('127.0.0.1', { ...LOCAL, 'x-forwarded-for': '10.0.0.7' }),
    ],
  ])('is not possible from %s', (_, request) => {
    expect(denied(request)).toBe(403)
  })
})

describe('acting with a configured token', () => {
  const access = new Access({ token: TOKEN, hosts: [] })

  it('takes the whole token, from wherever', () => {
    expect(access.act(from('10.0.0.7', { host: 'pod:8081', ...bearer(TOKEN) }))).toBeUndefined()
    for (const wrong of ['', 'a', TOKEN.slice(0, -1), `${TOKEN}x`, TOKEN.toUpperCase()]) {
      expect(access.act(from('127.0.0.1', { ...LOCAL, ...bearer(wrong) }))?.status).toBe(401)
    }
    expect(access.act(from('127.0.0.1', LOCAL))?.status).toBe(401)
    expect(access.act(from('127.0.0.1', { ...LOCAL, authorization: TOKEN }))?.status).toBe(401)
  })

  it('does not let a page of somebody else use it', () => {
    const headers = { host: 'pod:8081', origin: 'http://evil.example', ...bearer(TOKEN) }
    expect(access.act(from('10.0.0.7', headers))?.status).toBe(403)
  })

  it('takes it for looking, too, but not on this machine', () => {
    expect(access.look(from('10.0.0.7', { host: 'pod:8081' }))?.status).toBe(401)
    expect(access.look(from('10.0.0.7', { host: 'pod:8081', ...bearer(TOKEN) }))).toBeUndefined()
    expect(access.look(from('127.0.0.1', { host: 'localhost:8081' }))).toBeUndefined()
    expect(access.look(from('127.0.0.1', { host: 'evil.example' }))?.status).toBe(401)
  })
})

describe('looking without a configured token', () => {
  it('is possible for whoever reaches it, but not under a name that this machine does not have', () => {
    const access = new Access({ token: undefined, hosts: ['dash.example'] })
    expect(access.look(from('10.0.0.7', { host: '10.0.0.1:8081' }))).toBeUndefined()
    expect(access.look(from('127.0.0.1', { host: '[::1]:8081' }))).toBeUndefined()
    expect(access.look(from('127.0.0.1', { host: 'dash.example:443' }))).toBeUndefined()
    expect(access.look(from('127.0.0.1', { host: 'evil.example' }))?.status).toBe(403)
  })
})
