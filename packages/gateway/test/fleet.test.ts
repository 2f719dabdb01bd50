// test-group: io

import { createMockVendor, type MockVendor } from '@spillway/mock-vendor'
/** Two gateways with one Redis share one limit and one breaker, as seen by the vendor. */
import type { FleetReport } from 'spillway/operate'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type RedisServer, startRedis } from '../../spillway/test/redis-server.js'
import { pauseMs } from '../../spillway/test/streams/stream-kit.js'
import { spawnGateway } from './gateway-process.js'

const POST = { method: 'POST' } as const

/** Each vendor has its own mock vendor and one model with its own name. */
const GUARDS = {
  limited: {
    limits: [{ limit: 10, windowMs: '1m' }],
    // A permit that arrives later than this counts as spent.
    jitterMs: '2s',
  },
  users: { userLimits: [{ per: 'user', limit: 5, windowMs: '1m' }] },
  counted: { breaker: { consecutiveFailures: 100, openMs: '1m' } },
  broken: { breaker: { consecutiveFailures: 4, openMs: '1m' } },
}
type Name = keyof typeof GUARDS
const NAMES = Object.keys(GUARDS) as Name[]

let redis: RedisServer
let vendors: Record<Name, MockVendor>
let gateways: Awaited<ReturnType<typeof spawnGateway>>[] = []

beforeAll(async () => {
  redis = await startRedis()
  vendors = Object.fromEntries(
    NAMES.map((name) => [name, createMockVendor({ knobs: { tokens: 1 } })]),
  ) as typeof vendors
  const written = await Promise.all(
    NAMES.map(async (name) => {
      const { url } = await vendors[name].start()
      return [name, { protocol: 'openai', url, ...GUARDS[name] }] as const
    }),
  )
  const options = {
    config: {
      // A busy machine is not an outage.
      redis: { url: 'env:REDIS_URL', commandTimeoutMs: '10s' },
      vendors: Object.fromEntries(written),
      routes: NAMES.map((name) => ({ vendor: name, models: [name] })),
    },
    env: { REDIS_URL: redis.url },
  }
  gateways = await Promise.all([spawnGateway(options), spawnGateway(options)])
  // From here on both gateways count in Redis.
  const fleetOf = async ({ adminUrl }: { adminUrl: string }) =>
    ((await (await fetch(`${adminUrl}/health/deep`)).json()) as { fleet?: FleetReport }).fleet
  for (const each of gateways) {
    await vi.waitFor(async () => {
      expect(await fleetOf(each)).toMatchObject({ store: 'shared', livePods: 2 })
    })
  }
})
afterAll(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop()))
  await Promise.all(Object.values(vendors ?? {}).map((vendor) => vendor.close()))
  await redis?.stop()
})

const ask = (name: Name, gateway: { url: string } | undefined) => {
  const body = JSON.stringify({ model: name, messages: [] })
  return fetch(`${gateway?.url}/v1/chat/completions`, { ...POST, body })
}

/** Sends to both gateways in turn. */
function inTurn(name: Name) {
  let turn = 0
  return { vendor: vendors[name], chat: () => ask(name, gateways[turn++ % 2]) }
}

async function untilOpen(adminUrl: string): Promise<void> {
  for (;;) {
    const snapshot = await (await fetch(`${adminUrl}/snapshot`)).text()
    if (snapshot.includes('"state":"open"')) return
    await pauseMs(10)
  }
}

describe('two gateways with one Redis', () => {
  it('two gateways share one limit: at most ten of forty requests reach the vendor', async () => {
    const { vendor, chat } = inTurn('limited')
    const answers = await Promise.all(Array.from({ length: 40 }, chat))
    const count = (status: number) => answers.filter((each) => each.status === status).length
    expect(vendor.mostInAnyWindow('1m')).toBeLessThanOrEqual(10)
    expect(count(200)).toBe(vendor.counts.arrived)
    // On a busy machine a permit may arrive too late and count as spent.
    expect(count(200)).toBeGreaterThanOrEqual(8)
    expect(count(200) + count(429)).toBe(40)
  })

  it('two gateways share the limit of each user', async () => {
    const { vendor, chat } = inTurn('users')
    await Promise.all(Array.from({ length: 22 }, chat))
    expect(vendor.counts.arrived).toBeLessThanOrEqual(5)
    expect(vendor.counts.arrived).toBeGreaterThanOrEqual(4)
  })

  it('each gateway reports the counts of the other', async () => {
    const [one, two] = gateways
    vendors.counted.set({ status: 500 })
    for (let i = 0; i < 30; i++) await ask('counted', one)
    const breakersOf = async () => {
      const report = await (await fetch(`${two?.adminUrl}/health/deep`)).json()
      const { fleet } = report as { fleet: FleetReport }
      return fleet.guards.flatMap((guard) => guard.breakers)
    }
    // Pods report their lanes once a second.
    await expect
      .poll(breakersOf)
      .toContainEqual(expect.objectContaining({ lane: 'counted', state: 'closed', failures: 30 }))
  })

  it('two gateways share one breaker, so neither calls a vendor that failed for the other', async () => {
    const { vendor, chat } = inTurn('broken')
    vendor.set({ status: 500 })
    for (let i = 0; i < 4; i++) expect((await chat()).status).toBe(500)
    for (const { adminUrl } of gateways) await untilOpen(adminUrl)
    const reasons: (string | null)[] = []
    for (let i = 0; i < 8; i++) reasons.push((await chat()).headers.get('spillway-decision'))
    expect(vendor.counts.arrived).toBe(4)
    for (const reason of reasons) expect(reason).toContain('stage=breaker;reason=CIRCUIT_OPEN')
  })
})
