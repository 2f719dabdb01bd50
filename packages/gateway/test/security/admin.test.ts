// test-group: sockets

/** The admin port as a page of another site in an operator's browser would use it. */
import { once } from 'node:events'
import { request } from 'node:http'
import { expect, it } from 'vitest'
import { startGateway } from '../gateway-kit.js'
import { connectTo, exchangeRaw } from './raw.js'

/** fetch does not allow these headers. */
function ask(url: string, headers: Record<string, string>, method = 'GET') {
  return new Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; text: string }>(
    (resolve, reject) => {
      const sent = request(url, { method, headers }, (response) => {
        let text = ''
        response.on('data', (chunk) => {
          text += chunk
        })
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
        )
      })
      sent.on('error', reject).end()
    },
  )
}

it('the admin port answers operators but neither other sites nor foreign host names', async () => {
  const { adminUrl } = await startGateway()
  const { host, port } = new URL(adminUrl)
  const of = async (headers: Record<string, string>) =>
    (await ask(`${adminUrl}/snapshot`, headers)).status
  expect(await of({})).toBe(200)
  expect(await of({ host: `localhost:${port}` })).toBe(200)
  expect(await of({ origin: `http://${host}`, 'sec-fetch-site': 'same-origin' })).toBe(200)
  expect(await of({ host: `rebound.example:${port}` })).toBe(403)
  expect(await of({ origin: 'https://evil.example' })).toBe(403)
  expect(await of({ origin: 'null' })).toBe(403)
  expect(await of({ 'sec-fetch-site': 'cross-site' })).toBe(403)
})

it('admin answers forbid framing and caching and do not repeat the request', async () => {
  const { adminUrl } = await startGateway()
  const { status, headers, text } = await ask(`${adminUrl}/nothing-planted?token=planted`, {})
  expect(status).toBe(404)
  expect(text).not.toContain('planted')
  expect(headers).toMatchObject({
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
  })
})

it('the admin port refuses malformed HTTP and oversized headers', async () => {
  const { adminUrl } = await startGateway()
  const large = `GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ${'a'.repeat(20_000)}\r\n\r\n`
  expect((await exchangeRaw(adminUrl, large)).statuses).toEqual([431])
  const twice =
    'POST /x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'
  expect((await exchangeRaw(adminUrl, twice)).statuses).toEqual([400])
})

it('the admin port has at most 200 connections', async () => {
  const { adminUrl } = await startGateway()
  const held = Array.from({ length: 200 }, () => connectTo(adminUrl))
  await Promise.all(held.map((socket) => once(socket, 'connect')))
  const live = 'GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n'
  expect(await exchangeRaw(adminUrl, live)).toMatchObject({ text: '', closed: true })
  for (const socket of held) socket.destroy()
  // The gateway may notice the closed connections later.
  while ((await exchangeRaw(adminUrl, live)).statuses[0] !== 200);
})

const TOKEN = 'an-admin-token-0123456789'

it.each(['/metrics', '/health/deep'])(
  '%s on a port that other machines reach answers addresses, listed names and operators only',
  async (path) => {
    const { adminUrl } = await startGateway(
      { admin: { port: 0, host: '0.0.0.0', token: 'env:TOKEN', hosts: ['Gateway.internal'] } },
      {},
      { TOKEN },
    )
    const { port } = new URL(adminUrl)
    const of = async (host: string, headers: Record<string, string> = {}) =>
      (await ask(`${adminUrl}${path}`, { host, ...headers })).status
    expect(await of(`rebound.example:${port}`)).toBe(403)
    expect(await of('rebound.example')).toBe(403)
    expect(await of('127.0.0.1.rebound.example')).toBe(403)
    expect(await of('localhost.rebound.example')).toBe(403)
    expect(await of(`127.0.0.1:${port}`)).toBe(200)
    expect(await of('10.1.2.3')).toBe(200)
    expect(await of(`[2001:db8::1]:${port}`)).toBe(200)
    expect(await of(`localhost:${port}`)).toBe(200)
    expect(await of(`gateway.internal:${port}`)).toBe(200)
    expect(await of('rebound.example', { authorization: `Bearer ${TOKEN}` })).toBe(200)
    expect(await of('rebound.example', { authorization: 'Bearer another' })).toBe(403)
  },
)

it('probes of an admin port that other machines reach may use any name', async () => {
  const { adminUrl } = await startGateway({ admin: { port: 0, host: '0.0.0.0' } })
  for (const path of ['/health/live', '/health/ready']) {
    expect((await ask(`${adminUrl}${path}`, { host: 'gateway.example' })).status).toBe(200)
  }
})

it('with the widest admin.readAccess an unknown name sees neither the snapshot nor the dashboard', async () => {
  const { adminUrl } = await startGateway({
    admin: { port: 0, host: '0.0.0.0', readAccess: 'public' },
  })
  for (const path of ['/snapshot', '/status', '/config', '/dashboard/']) {
    expect((await ask(`${adminUrl}${path}`, { host: 'rebound.example' })).status).toBe(403)
    expect((await ask(`${adminUrl}${path}`, { host: '10.1.2.3' })).status).toBe(200)
  }
})
