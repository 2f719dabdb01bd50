// test-group: io, slow

/** Routes that pick between vendors by headroom, in two gateways on one Redis. */
import type { MockVendor } from '@spillway/mock-vendor'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../../spillway/test/redis-server.js'
import { pauseMs, until } from '../../spillway/test/streams/stream-kit.js'
import { type RunningGateway, startGateway, startVendor } from './gateway-kit.js'

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis?.stop())

const WINDOW_MS = 1_500

/** Two vendors, one with twice the limit, and two gateways in front of both. */
async function startTwo(guard: object = {}) {
  const big = await startVendor({ knobs: { tokens: 1 } })
  const small = await startVendor({ knobs: { tokens: 1 } })
  const vendor = (url: string, limit: number) => ({
    protocol: 'openai',
    url,
    limits: [{ limit, windowMs: WINDOW_MS }],
    // A late permit counts as spent, which happens often on a busy machine.
    jitterMs: 400,
    ...guard,
  })
  const written = {
    redis: redis.url,
    expectedPods: 2,
    vendors: { big: vendor(big.url, 40), small: vendor(small.url, 20) },
    routes: [{ pick: 'headroom', vendors: ['big', 'small'] }],
  }
  const gateways = await Promise.all([startGateway(written), startGateway(written)])
  await until('both share', () =>
    gateways.every(({ gateway }) =>
      gateway.spillway.snapshot().guards.every(({ store }) => store?.status !== 'starting'),
    ),
  )
  return { big: big.vendor, small: small.vendor, gateways }
}

/** Sends more load than both vendors allow for `forMs`. */
async function saturate(gateways: readonly RunningGateway[], forMs: number): Promise<number[]> {
  const endMs = performance.now() + forMs
  const statuses: number[] = []
  const client = async (index: number) => {
    while (performance.now() < endMs) {
      const answer = await (gateways[index % 2] as RunningGateway).chat()
      await answer.text()
      statuses.push(answer.status)
      await pauseMs(20)
    }
  }
  await Promise.all(Array.from({ length: 8 }, (_, index) => client(index)))
  return statuses
}

async function saturateUntil(gateways: readonly RunningGateway[], isSo: () => boolean) {
  for (let turn = 0; turn < 100 && !isSo(); turn++) await saturate(gateways, 100)
  expect(isSo()).toBe(true)
}

function forget(...vendors: MockVendor[]): void {
  for (const vendor of vendors) vendor.clear()
}

describe('route with pick: headroom', () => {
  it('a route by headroom uses all keys of a vendor, each within its own limit', async () => {
    const { chat, vendor } = await startGateway(
      {
        guard: {
          keys: { one: 'env:ONE', two: 'env:TWO' },
          limits: [{ limit: 5, windowMs: '1m' }],
        },
        routes: [{ pick: 'headroom', vendors: ['openai'], models: ['gpt'] }],
      },
      { knobs: { tokens: 1 } },
      { ONE: 'key-one', TWO: 'key-two' },
    )
    const answers: Response[] = []
    for (let i = 0; i < 12; i++) answers.push(await chat())
    const count = (key: string) => vendor.calls.filter((call) => call.key === key).length
    expect([count('key-one'), count('key-two')]).toEqual([5, 5])
    expect(answers.map(({ status }) => status).slice(10)).toEqual([429, 429])
    expect(answers[0]?.headers.get('spillway-decision')).toMatch(/lane="gpt \((one|two)\)"/)
  })
})

describe('two gateways with pick: headroom', () => {
  it('routes by headroom use limits of 2 to 1 in that ratio, and no paused or failing vendor', {
    timeout: 120_000,
  }, async () => {
    const breaker = { consecutiveFailures: 3, openMs: '1m' }
    const { big, small, gateways } = await startTwo({ breaker })
    await saturate(gateways, WINDOW_MS)
    // The ratio follows the limits only while the load exceeds both, which a busy machine may not manage at once.
    for (let turn = 0; turn < 6; turn++) {
      forget(big, small)
      const statuses = await saturate(gateways, 3 * WINDOW_MS)
      if (statuses.filter((status) => status === 429).length > statuses.length / 4) break
    }
    const ratio = big.counts.arrived / small.counts.arrived
    expect(ratio).toBeGreaterThan(1.5)
    expect(ratio).toBeLessThan(2.7)
    // Neither vendor is left idle for the other.
    expect(small.counts.arrived).toBeGreaterThan(10)

    // One vendor asks for a pause: both gateways stop calling it after the requests in flight.
    small.set({ status: 429, retryAfterMs: 60_000 })
    await saturateUntil(gateways, () => small.calls.some(({ status }) => status === 429))
    await pauseMs(300)
    forget(big, small)
    const statuses = await saturate(gateways, WINDOW_MS)
    expect(small.counts.arrived).toBe(0)
    expect(statuses).toContain(200)

    // The other vendor fails: its circuit opens for both gateways and no target is left.
    big.set({ status: 500 })
    await saturateUntil(gateways, () =>
      gateways.every(({ gateway }) =>
        gateway.spillway
          .guard('big')
          .snapshot()
          .breakers.some(({ state }) => state === 'open'),
      ),
    )
    await pauseMs(300)
    forget(big, small)
    const refused = await saturate(gateways, 500)
    expect(big.counts.arrived + small.counts.arrived).toBe(0)
    expect(new Set(refused)).not.toContain(200)
  })
})
