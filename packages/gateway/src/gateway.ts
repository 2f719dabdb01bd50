/**
 * A gateway: the data port in front of its vendors, each with a guard, and the admin port beside it.
 * With a Redis, all gateways of a fleet share one verdict on each vendor and one budget for it.
 */
import { createSpillway, onEvent, type Spillway } from 'spillway'
import { redisStore } from 'spillway/redis'
import { createMockVendor, type MockVendor } from 'spillway/testing'
import { Health } from './admin/health.js'
import { createAdminServer } from './admin/server.js'
import type { GatewayConfig } from './config/config.js'
import { DataServer } from './data/server.js'
import { Site } from './data/site.js'
import { Vendor } from './data/vendor.js'
import { createLog, type GatewayLog } from './observe/log.js'
import { createMetrics } from './observe/metrics.js'
import { createScrub } from './observe/scrub.js'

export interface GatewayOptions {
  /** Default: lines on standard output. */
  log?: GatewayLog
}

export interface Gateway {
  /** Where it listens now. */
  start(): Promise<{ port: number; adminPort: number }>
  readonly spillway: Spillway
  /** The vendor inside, if there is one. */
  readonly mock: MockVendor | undefined
  /**
   * Drains: not ready any more, no new connections, running requests finish within the grace. Called
   * again with a shorter one, that one counts.
   */
  close(options?: { graceMs?: number; delayMs?: number }): Promise<void>
}

/** What the vendor inside does, unless a request says otherwise. */
const MOCK_KNOBS = { latencyMs: 200, tokens: 24, tokenMs: 30 } as const

export async function createGateway(
  config: GatewayConfig,
  { log = createLog(config.log.level, createScrub(config)) }: GatewayOptions = {},
): Promise<Gateway> {
  const { redis, pod } = config
  const store =
    redis && redisStore({ url: redis.url, ...(redis.prefix && { prefix: redis.prefix }) })
  const spillway = createSpillway({ ...(store && { store }), ...(pod !== undefined && { pod }) })
  const health = new Health(() => spillway.health())
  const mock = config.vendors.some(({ url }) => url === 'mock')
    ? createMockVendor({ knobs: MOCK_KNOBS })
    : undefined
  const mockUrl = (await mock?.start())?.url ?? ''
  const vendors = new Map(
    config.vendors.map((each) => [
      each.name,
      new Vendor(each, each.url === 'mock' ? mockUrl : each.url, spillway),
    ]),
  )
  const stopListening = onEvent((event) => log.event(event))
  const metrics = createMetrics(spillway, () => data)
  const site = new Site(config, vendors, {
    onRecord(record) {
      metrics.request(record)
      log.request(record)
    },
    onFailure: (error) => log.failure(error),
  })
  const data = new DataServer(site, (path) => health.at(path))
  const admin = createAdminServer({
    health,
    registry: metrics.registry,
    spillway,
    host: config.admin.host,
  })
  let closed: Promise<void> | undefined
  let endGrace: (() => void) | undefined

  async function drain(delayMs: number): Promise<void> {
    health.phase = 'draining'
    site.draining = true
    const graceOver = new Promise<void>((resolve) => {
      endGrace = resolve
    })
    // Whoever sends us requests should have noticed before we stop listening.
    if (delayMs > 0) await Promise.race([sleep(delayMs), graceOver])
    await Promise.race([data.drain(), graceOver])
    await spillway.close({ graceMs: 0 })
    data.close()
    await Promise.all([...vendors.values()].map((vendor) => vendor.close()))
    await mock?.close()
    await admin.close()
    await store?.close()
    stopListening()
    log.close()
  }

  return {
    spillway,
    mock,
    async start() {
      const adminAddress = await admin.listen(config.admin)
      const port = await data.listen(config.port, config.host)
      health.phase = 'ready'
      return { port, adminPort: Number(new URL(adminAddress).port) }
    },
    async close({ graceMs = config.drain.graceMs, delayMs = config.drain.delayMs } = {}) {
      closed ??= drain(delayMs)
      const patience = setTimeout(() => endGrace?.(), delayMs + graceMs)
      await closed.finally(() => clearTimeout(patience))
    },
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref())
}
