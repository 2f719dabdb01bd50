// test-group: io, slow

import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { readFeed } from '../../dashboard/test/server/dashboard-kit.js'
import { type RedisServer, startRedis } from '../../spillway/test/redis-server.js'
import { greeting } from '../src/cli/gateway/greeting.js'
import { builtInConfig } from '../src/config/built-in-config.js'
import { createGateway } from '../src/gateway.js'
import { startGateway } from './gateway-kit.js'

const TOKEN = 'planted-admin-token-0123456789'
const SILENT = { request() {}, event() {}, failure() {}, close() {} }

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

async function act(adminUrl: string, body: object, headers: Record<string, string> = {}) {
  const response = await fetch(`${adminUrl}/dashboard/act`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: adminUrl, ...headers },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: (await response.json()) as { did?: string } }
}

describe('gateway dashboard', () => {
  it('the dashboard is served on the admin port, where / redirects to it, and not on the data port', async () => {
    const { adminUrl, url } = await startGateway()
    const page = await fetch(adminUrl)
    expect(page.url).toBe(`${adminUrl}/dashboard/`)
    expect(await page.text()).toContain('<!doctype html>')
    const root = await fetch(adminUrl, { redirect: 'manual' })
    const links = Object.values((await root.json()) as Record<string, string>)
    expect(links).toEqual(['/dashboard/', '/health/deep', '/metrics', '/status'])
    for (const link of links) expect((await fetch(adminUrl + link)).status).toBe(200)
    expect((await fetch(`${adminUrl}/dashboard`)).status).toBe(200)
    expect((await fetch(`${url}/dashboard/`)).status).toBe(404)
    expect((await fetch(`${adminUrl}/metrics`)).status).toBe(200)
  })

  it('the dashboard explains a refused request and shows no key, body or answer', async () => {
    const { adminUrl, chat } = await startGateway(
      {
        guard: { userLimits: [{ per: 'user', limit: 2, windowMs: '1h' }] },
        callers: [{ key: 'env:ADA_KEY', user: 'ada', tier: 'pro' }],
        vendors: {
          third: { protocol: 'http', url: 'http://127.0.0.1:9', key: 'env:VENDOR_KEY' },
        },
        routes: [{ path: '/v1/*', vendor: 'openai' }],
        admin: { port: 0, token: 'env:ADMIN_TOKEN' },
      },
      {},
      { ADA_KEY: 'planted-caller-key', VENDOR_KEY: 'planted-vendor-key', ADMIN_TOKEN: TOKEN },
    )
    const shown = { authorization: `Bearer ${TOKEN}` }
    const reader = await readFeed(`${adminUrl}/dashboard/events`, shown)
    const hello = await reader.until('hello')
    expect(hello.acts).toBe('token')
    expect(hello.demo).toBeUndefined()
    const headers = { authorization: 'Bearer planted-caller-key', cookie: 'planted-cookie' }
    const body = { messages: [{ role: 'user', content: 'planted words' }], model: 'gpt-4o' }
    const answers = [await chat(body, { headers }), await chat(body, { headers })]
    await Promise.all(answers.map((each) => each.arrayBuffer()))
    const refused = await chat(body, { headers })
    expect(refused.status).toBe(429)
    await refused.arrayBuffer()
    const { records } = await reader.until('decisions', (each) =>
      each.records.some(({ code }) => code === 'USER_LIMITED'),
    )
    expect(records.find(({ code }) => code === 'USER_LIMITED')).toMatchObject({
      user: 'ada',
      guard: 'openai',
      lane: 'gpt-4o',
      stage: 'user-limit',
      numbers: { limit: 2 },
    })
    await reader.until('guards', ({ guards }) => guards.some(({ flow }) => flow.calls > 0))
    expect((await act(adminUrl, { act: 'reset', guard: 'openai' })).status).toBe(401)
    expect(reader.text).not.toMatch(/planted/i)
  })

  it('drain on the dashboard makes another gateway finish its requests and leave', async () => {
    const written = { redis: { url: redis.url, prefix: 'drain:' }, drain: { graceMs: '5s' } }
    const [one, other] = [await startGateway(written), await startGateway(written)]
    const reader = await readFeed(`${one.adminUrl}/dashboard/events`)
    const { pod } = other.gateway.spillway
    await reader.until('fleet', ({ pods }) => pods.some((each) => each.pod === pod))
    other.vendor.set({ latencyMs: 1_500 })
    const running = other.chat()
    await vi.waitUntil(() => other.vendor.atOnce === 1, 5_000)
    expect(await act(one.adminUrl, { act: 'drain', pod })).toMatchObject({ status: 200 })
    expect((await running).status).toBe(200)
    await (await running).arrayBuffer()
    await other.gateway.whenClosed
    await expect(other.chat()).rejects.toThrow('fetch failed')
    const left = reader.all('fleet').length
    await vi.waitUntil(
      () =>
        reader
          .all('fleet')
          .slice(left)
          .some(({ pods }) => pods.every((each) => each.pod !== pod)),
      10_000,
    )
    expect((await one.chat()).status).toBe(200)
  })
})

describe('gateway without a file', () => {
  it('the embedded gateway demonstrates load, a failing vendor, three agreeing pods and recovery', async () => {
    const written = builtInConfig({ env: {} })
    const config = {
      ...written,
      port: 0,
      host: '127.0.0.1',
      admin: { ...written.admin, port: 0 },
      // With shorter times.
      vendors: written.vendors.map((vendor) => ({
        ...vendor,
        guard: {
          ...vendor.guard,
          breaker: { ...vendor.guard.breaker, openMs: 2_000, successes: 1 },
        },
      })),
    }
    const gateway = await createGateway(config, { log: SILENT })
    onTestFinished(() => gateway.close({ graceMs: 0, delayMs: 0 }))
    const { adminPort } = await gateway.start()
    const adminUrl = `http://127.0.0.1:${adminPort}`
    const reader = await readFeed(`${adminUrl}/dashboard/events`)
    expect((await reader.until('hello')).demo).toEqual({ load: false, broken: false })
    await sleep(300)
    expect(gateway.mock?.counts.arrived).toBe(0)
    expect(await act(adminUrl, { act: 'demo', load: true })).toMatchObject({ status: 200 })
    await reader.until('demo', ({ load }) => load)
    await reader.until('decisions', ({ records }) => records.some(({ code }) => code === 'OK'))
    await reader.until('fleet', ({ pods }) => pods.length === 3)
    await reader.until(
      'jobQueues',
      ({ jobQueues: [later] }) =>
        later?.name === 'later' &&
        later.waiting > 0 &&
        later.done > 0 &&
        later.byTenant.top.length > 1,
    )
    await act(adminUrl, { act: 'demo', broken: true })
    await reader.until('transition', ({ to }) => to === 'open')
    await reader.until(
      'fleet',
      ({ pods }) => pods.length === 3 && pods.every(({ guards }) => (guards[0]?.[5] ?? 0) >= 1),
    )
    await act(adminUrl, { act: 'demo', broken: false })
    await reader.until('transition', ({ to }) => to === 'closed')
    await act(adminUrl, { act: 'demo', load: false })
    await reader.until('demo', ({ load, broken }) => !load && !broken)
    // Jobs that were accepted are done, with or without load.
    const idle = () => {
      const later = reader.last('jobQueues')?.jobQueues[0]
      return later?.waiting === 0 && later.active === 0 && gateway.mock?.atOnce === 0
    }
    await vi.waitUntil(idle, 25_000)
    const arrived = gateway.mock?.counts.arrived
    await sleep(400)
    expect(gateway.mock?.counts.arrived).toBe(arrived)
  })

  it('the greeting names the dashboard URL', () => {
    const config = builtInConfig({ env: {} })
    const words = greeting({ config, file: undefined, port: 8080, adminPort: 8081 })
    expect(words).toContain('Dashboard: http://127.0.0.1:8081/dashboard/')
    // The suggested request matches a job queue.
    expect(words).toContain(`"model": "${config.jobQueues?.[0]?.model}"`)
  })
})
