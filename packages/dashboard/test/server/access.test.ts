import { describe, expect, it } from 'vitest'
import {
  type AccessRequest,
  createOperatorAccess,
} from '../../../spillway/src/http/operator-access.js'

const TOKEN = 'a-token-of-some-length'

function from(remoteAddress: string, headers: Record<string, string> = {}): AccessRequest {
  return { method: 'POST', socket: { remoteAddress }, headers }
}

const LOCAL = { host: 'localhost:8081', origin: 'http://localhost:8081' }
const POD = { host: 'pod:8081' }
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const NEAR = from('127.0.0.1', LOCAL)
const FAR = from('10.0.0.7', POD)

describe('operator access without a token', () => {
  const access = createOperatorAccess()

  it.each(['127.0.0.1', '::1', '::ffff:127.0.0.1', '127.8.9.10'])(
    'a request from this machine (%s) may read and act',
    (address) => {
      const request = from(address, LOCAL)
      expect(access.read(request)).toBeUndefined()
      expect(access.act(request)).toBeUndefined()
      expect(access.acts(request)).toBe('open')
      // A program sends no origin.
      expect(access.act(from(address, { host: '[::1]:8081' }))).toBeUndefined()
    },
  )

  it.each([
    ['another machine', from('10.0.0.7', LOCAL), 'NO_TOKEN'],
    [
      'a name that was bound to this machine',
      from('127.0.0.1', { host: 'evil.example', origin: 'http://evil.example' }),
      'WRONG_HOST',
    ],
    [
      'a page of another origin',
      from('127.0.0.1', { ...LOCAL, origin: 'http://evil.example' }),
      'OTHER_SITE',
    ],
    [
      'a page of another port',
      from('127.0.0.1', { ...LOCAL, origin: 'http://localhost:3000' }),
      'OTHER_SITE',
    ],
    [
      'a page that hides its origin',
      from('127.0.0.1', { host: 'localhost', origin: 'null' }),
      'OTHER_SITE',
    ],
    ['another site', from('127.0.0.1', { ...LOCAL, 'sec-fetch-site': 'cross-site' }), 'OTHER_SITE'],
    [
      'a proxy on this machine',
      from('127.0.0.1', { ...LOCAL, 'x-forwarded-for': '10.0.0.7' }),
      'NO_TOKEN',
    ],
    [
      'a bound name that claims to be a proxy',
      from('127.0.0.1', { host: 'evil.example', 'x-forwarded-for': '10.0.0.7' }),
      'WRONG_HOST',
    ],
    ['nowhere', from('', LOCAL), 'NO_TOKEN'],
  ])('without a token, requests from %s may neither read nor act', (_, request, code) => {
    expect(access.act(request)).toMatchObject({ status: 403, code })
    expect(access.read(request)).toMatchObject({ status: 403, code })
    expect(access.acts(request)).toBe('off')
  })

  it.each([
    ...['forwarded', 'via', 'x-real-ip', 'x-client-ip', 'cf-connecting-ip', 'true-client-ip'],
    ...['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto'],
  ])('a request through a local proxy that sets %s is not local', (header) => {
    // Like nginx: the Host header is the address of the upstream.
    const request = from('127.0.0.1', { host: '127.0.0.1:8081', [header]: '10.0.0.7' })
    expect(access.act(request)).toMatchObject({ status: 403, code: 'NO_TOKEN' })
    expect(access.read(request)).toMatchObject({ status: 403, code: 'NO_TOKEN' })
    const machine = createOperatorAccess({ token: TOKEN, readAccess: 'local' })
    expect(machine.read(request)).toMatchObject({ status: 401 })
  })

  it('without a token, an exposed port allows neither reading nor acting', () => {
    const exposed = createOperatorAccess({ exposed: true })
    for (const request of [NEAR, FAR]) {
      expect(exposed.read(request)).toMatchObject({ code: 'NO_TOKEN' })
      expect(exposed.act(request)).toMatchObject({ code: 'NO_TOKEN' })
    }
    expect(exposed.act(NEAR)?.problem).toContain('set a token')
    // Pages that need no token are served under any host name.
    expect(exposed.checkOrigin(from('127.0.0.1', POD))).toBeUndefined()
  })
})

describe('operator access with a token', () => {
  const access = createOperatorAccess({ token: TOKEN })

  it('reading and acting need the complete token from any address', () => {
    for (const request of [NEAR, FAR]) {
      for (const wrong of ['', 'a', TOKEN.slice(0, -1), `${TOKEN}x`, TOKEN.toUpperCase()]) {
        const shown = { ...request, headers: { ...request.headers, ...bearer(wrong) } }
        expect(access.act(shown)).toMatchObject({ status: 401, code: 'UNKNOWN_TOKEN' })
        expect(access.read(shown)?.status).toBe(401)
      }
      const plain = { ...request, headers: { ...request.headers, authorization: TOKEN } }
      expect(access.act(plain)?.status).toBe(401)
      expect(access.read(request)?.status).toBe(401)
      const right = { ...request, headers: { ...request.headers, ...bearer(TOKEN) } }
      expect(access.read(right)).toBeUndefined()
      expect(access.act(right)).toBeUndefined()
      expect(access.acts(request)).toBe('token')
    }
  })

  it('a page of another site cannot use the token', () => {
    const headers = { ...POD, origin: 'http://evil.example', ...bearer(TOKEN) }
    expect(access.act(from('10.0.0.7', headers))).toMatchObject({ code: 'OTHER_SITE' })
    expect(access.read(from('10.0.0.7', headers))).toMatchObject({ code: 'OTHER_SITE' })
  })

  it('a request with the token may come through a proxy under any host name', () => {
    const proxied = { host: 'dash.example', 'x-forwarded-for': '10.0.0.7', ...bearer(TOKEN) }
    expect(access.act(from('127.0.0.1', proxied))).toBeUndefined()
  })

  it('a token shorter than 16 characters is rejected', () => {
    expect(() => createOperatorAccess({ token: 'short' })).toThrow(
      'access.token: must have at least 16 characters',
    )
  })

  it.each([
    'with a blank inside',
    'with-a-line-break\n',
    'schlüssel-für-alle',
    'with-a-nul-inside\0',
  ])('a token that does not fit into a header is rejected: %j', (token) => {
    expect(() => createOperatorAccess({ token })).toThrow(
      'access.token: must be visible ASCII characters without blanks, or no header can carry it; create one with: openssl rand -hex 24',
    )
  })
})

describe('operator access with a wider `readAccess`', () => {
  it.each([
    [{ look: 'operators' }, "access.look: was renamed; use 'readAccess'"],
    [{ readAccess: 'machine' }, `got "machine"; use 'local'`],
    [{ readAccess: 'anybody' }, `got "anybody"; use 'public'`],
  ])('the former access option %j is rejected and its new name suggested', (options, message) => {
    expect(() => createOperatorAccess(options as object)).toThrow(message)
  })

  it("readAccess: 'local' lets local requests read but not act", () => {
    const access = createOperatorAccess({ token: TOKEN, readAccess: 'local' })
    expect(access.read(NEAR)).toBeUndefined()
    expect(access.act(NEAR)?.status).toBe(401)
    expect(access.read(FAR)?.status).toBe(401)
    expect(access.read(from('127.0.0.1', { host: 'evil.example' }))?.status).toBe(403)
  })

  it('with the widest `readAccess` everyone may read, but only under a known host name', () => {
    const access = createOperatorAccess({ readAccess: 'public', hosts: ['dash.example'] })
    expect(access.read(FAR)).toBeUndefined()
    expect(access.act(FAR)).toMatchObject({ code: 'NO_TOKEN' })
    expect(access.read(from('127.0.0.1', { host: 'dash.example:443' }))).toBeUndefined()
    expect(access.read(from('127.0.0.1', { host: 'evil.example' }))?.status).toBe(403)
  })
})

describe('links from other sites', () => {
  const access = createOperatorAccess()
  const link = { ...LOCAL, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }
  const { origin: _, ...followed } = { ...link, 'sec-fetch-dest': 'document' }

  it('a link from another site may be followed but neither framed nor posted', () => {
    const request = { ...from('127.0.0.1', followed), method: 'GET' }
    expect(access.checkOrigin(request)).toBeUndefined()
    expect(access.checkOrigin({ ...request, method: 'POST' })).toMatchObject({ code: 'OTHER_SITE' })
    const framed = { ...followed, 'sec-fetch-dest': 'iframe' }
    expect(access.checkOrigin({ ...request, headers: framed })).toMatchObject({
      code: 'OTHER_SITE',
    })
  })
})
