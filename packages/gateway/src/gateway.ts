/**
 * A gateway: the data port in front of its vendors, each with a guard, and the admin port beside it.
 * With a Redis, all gateways of a fleet share one verdict on each vendor and one budget for it.
 */
import { createOperator, createSpillway, onEvent, type Spillway } from 'spillway'
import { createDashboard } from 'spillway/http'
import { createMockVendor, type MockVendor } from 'spillway/testing'
import { DASHBOARD_PATH } from './admin/dashboard.js'
import { Health } from './admin/health.js'
import { type ConfigHooks, createAdminServer } from './admin/server.js'
import type { GatewayConfig } from './config/config.js'
import { DataServer } from './data/server.js'
import { Site } from './data/site.js'
import { Vendor } from './data/vendor.js'
import { Demo } from './demo/demo.js'
import { createLog, type GatewayLog } from './observe/log.js'
import { createMetrics } from './observe/metrics.js'
import { openStore } from './shared-store.js'

export interface GatewayOptions {
  /** Default: lines on standard output. */
  log?: GatewayLog
  /** What operators may do to the configuration, over the admin port. */
  config?: ConfigHooks
}

export interface Gateway {
  /** Where it listens now. */
  start(): Promise<{ port: number; adminPort: number }>
  readonly spillway: Spillway
  /** When it has been closed, by whomever: an operator may have asked it to drain. */
  readonly whenClosed: Promise<void>
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
  { log = createLog(config.log.level), config: hooks }: GatewayOptions = {},
): Promise<Gateway> {
  const { redis, pod } = config
  const store = redis && openStore(redis)
  const spillway = createSpillway({
    ...(store && { store }),
    ...(pod !== undefined && { pod }),
    ...(redis?.expectedPods !== undefined && { expectedPods: redis.expectedPods }),
  })
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
  const stopListening = onEvent((event) => {
    log.event(event)
    if (event.type === 'pod.asked' && event.name === spillway.pod) void gateway.close()
  })
  const metrics = createMetrics(spillway, () => data.running)
  const site = new Site(config, vendors, {
    onRecord(record) {
      metrics.request(record)
      log.request(record)
    },
    onFailure: (error) => log.failure(error),
  })
  const data = new DataServer(site, (path) => health.at(path))
  const guards = Object.fromEntries(config.vendors.map(({ name, guard }) => [name, guard]))
  const demo = mock && createDemo(config, mock, mockUrl, spillway, () => address)
  const dashboard = createDashboard({
    spillway,
    path: DASHBOARD_PATH,
    ...(config.admin.token !== undefined && { token: config.admin.token }),
    ...(demo && { demo }),
  })
  const admin = createAdminServer({
    health,
    registry: metrics.registry,
    spillway,
    operator: createOperator({ store: spillway.store, guards }),
    host: config.admin.host,
    token: config.admin.token,
    audit: (event) => log.event(event),
    config: hooks,
    dashboard,
  })
  let address = ''
  let onClosed: (() => void) | undefined
  const whenClosed = new Promise<void>((resolve) => {
    onClosed = resolve
  })
  let closed: Promise<void> | undefined
  let endGrace: (() => void) | undefined

  async function drain(delayMs: number): Promise<void> {
    health.phase = 'draining'
    site.draining = true
    await demo?.close()
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
    dashboard.close()
    await admin.close()
    await store?.close()
    stopListening()
    log.close()
    onClosed?.()
  }

  const gateway: Gateway = {
    spillway,
    mock,
    whenClosed,
    async start() {
      const { host, port: adminPort } = config.admin
      const adminAddress = await admin.listen({ host, port: adminPort })
      const port = await data.listen(config.port, config.host)
      address = `http://127.0.0.1:${port}`
      health.phase = 'ready'
      return { port, adminPort: Number(new URL(adminAddress).port) }
    },
    async close({ graceMs = config.drain.graceMs, delayMs = config.drain.delayMs } = {}) {
      closed ??= drain(delayMs)
      const patience = setTimeout(() => endGrace?.(), delayMs + graceMs)
      await closed.finally(() => clearTimeout(patience))
    },
  }
  return gateway
}

/** Only where anybody may call: with a key of its own it would be one of the callers. */
function createDemo(
  { vendors, callers }: GatewayConfig,
  mock: MockVendor,
  mockUrl: string,
  { store }: Spillway,
  gatewayUrl: () => string,
): Demo | undefined {
  if (callers !== undefined) return undefined
  const mocked = vendors.filter(({ url }) => url === 'mock')
  return new Demo({ vendors: mocked, mock, mockUrl, store, gatewayUrl })
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref())
}
