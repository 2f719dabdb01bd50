// test-group: io

/** Two gateways with one Redis share one limit and one breaker, as seen by the vendor. */
import type { FleetReport } from 'spillway'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../../spillway/test/redis-server.js'
import { pauseMs } from '../../spillway/test/streams/stream-kit.js'
import { startVendor } from './gateway-kit.js'
import { startGatewayProcess } from './gateway-process.js'

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis?.stop())

/** Two processes in front of one vendor. */
async function startTwo(name: string, guard: object, knobs: object = {}) {
  const { vendor, url } = await startVendor({ knobs: { tokens: 1, ...knobs } })
  const config = {
    // A busy machine is not an outage.
    redis: { url: 'env:REDIS_URL', commandTimeoutMs: '10s' },
    vendors: { [name]: { protocol: 'openai', url, ...guard } },
    routes: [{ vendor: name, models: ['gpt'] }],
  }
  const env = { REDIS_URL: redis.url }
  const both = await Promise.all([
    startGatewayProcess({ config, env }),
    startGatewayProcess({ config, env }),
  ])
  // Both count in Redis from here on.
  const fleetOf = async ({ adminUrl }: { adminUrl: string }) =>
    ((await (await fetch(`${adminUrl}/health/deep`)).json()) as { fleet?: FleetReport }).fleet
  for (const each of both) {
    await expect.poll(() => fleetOf(each)).toMatchObject({ store: 'shared', livePods: 2 })
  }
  let turn = 0
  const chat = () =>
    fetch(`${both[turn++ % 2]?.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ model: 'gpt', messages: [] }),
    })
  return { vendor, chat, both }
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
    const { vendor, chat } = await startTwo('limited', {
      limits: [{ limit: 10, windowMs: '1m' }],
      // A permit that arrives later than this counts as spent.
      jitterMs: '2s',
    })
    const answers = await Promise.all(Array.from({ length: 40 }, chat))
    const count = (status: number) => answers.filter((each) => each.status === status).length
    expect(vendor.mostInAnyWindow('1m')).toBeLessThanOrEqual(10)
    expect(count(200)).toBe(vendor.counts.arrived)
    // On a busy machine a permit may arrive too late and count as spent.
    expect(count(200)).toBeGreaterThanOrEqual(8)
    expect(count(200) + count(429)).toBe(40)
  })

  it('two gateways share the limit of each user', async () => {
    const userLimits = [{ per: 'user', limit: 5, windowMs: '1m' }]
    const { vendor, chat } = await startTwo('users', { userLimits })
    // Both are connected.
    await chat()
    await chat()
    await Promise.all(Array.from({ length: 20 }, chat))
    expect(vendor.counts.arrived).toBeLessThanOrEqual(5)
    expect(vendor.counts.arrived).toBeGreaterThanOrEqual(4)
  })

  it('each gateway reports the counts of the other', async () => {
    const breaker = { consecutiveFailures: 100, openMs: '1m' }
    const { both } = await startTwo('counted', { breaker }, { status: 500 })
    const [one, two] = both
    for (let i = 0; i < 30; i++) {
      await fetch(`${one?.url}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({ model: 'gpt', messages: [] }),
      })
    }
    const breakersOf = async () => {
      const report = await (await fetch(`${two?.adminUrl}/health/deep`)).json()
      const { fleet } = report as { fleet: FleetReport }
      return fleet.guards.flatMap((guard) => guard.breakers)
    }
    // Pods report their lanes once a second.
    await expect
      .poll(breakersOf)
      .toContainEqual(expect.objectContaining({ lane: 'gpt', state: 'closed', failures: 30 }))
  })

  it('two gateways share one breaker, so neither calls a vendor that failed for the other', async () => {
    const breaker = { consecutiveFailures: 4, openMs: '1m' }
    const { vendor, chat, both } = await startTwo('broken', { breaker }, { status: 500 })
    for (let i = 0; i < 4; i++) expect((await chat()).status).toBe(500)
    for (const { adminUrl } of both) await untilOpen(adminUrl)
    const reasons: (string | null)[] = []
    for (let i = 0; i < 8; i++) reasons.push((await chat()).headers.get('spillway-decision'))
    expect(vendor.counts.arrived).toBe(4)
    for (const reason of reasons) expect(reason).toContain('stage=breaker;reason=CIRCUIT_OPEN')
  })
})
