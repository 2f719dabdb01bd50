/**
 * A gateway: the data port in front of its vendors, each with a guard, and the admin port beside it.
 * With Redis, all gateways of a fleet share the breakers and limits of each vendor.
 */
import type { Socket } from 'node:net'
import {
  createDashboard,
  type DashboardPeers,
  type DecisionPage,
  type KnownRequest,
} from '@spillway/dashboard'
import { createMockVendor, type MockVendor } from '@spillway/mock-vendor'
import { type Clock, createOperator, createSpillway, onEvent, type Spillway } from 'spillway'
import { createOperatorAccess } from 'spillway/http'
import { systemClock } from 'spillway/internal'
import { createGenAiMetrics } from 'spillway/metrics'
import { accessOf } from './admin/access.js'
import { DASHBOARD_PATH } from './admin/dashboard.js'
import { Health } from './admin/health.js'
import { createHostCheck } from './admin/host-check.js'
import { OperatorLog } from './admin/operator-log.js'
import { OverloadWatch } from './admin/overload-watch.js'
import { type ConfigAnswer, createAdminServer } from './admin/server.js'
import { type GatewayConfig, keyNames, type VendorConfig } from './config/config.js'
import { counted } from './config/counted.js'
import { listenAddress } from './config/listen-address.js'
import { Demo } from './demo/demo.js'
import { Jobs } from './jobs/jobs.js'
import { GenAiRequests, loadMeter } from './observe/gen-ai.js'
import { createLog, type GatewayLog } from './observe/log.js'
import { createMetrics } from './observe/metrics.js'
import { createScrub } from './observe/scrub.js'
import { loadTracing } from './observe/tracing.js'
import { applicable, boundVendor, changesBetween } from './reload/changes.js'
import { type ReloadReport, Reloads } from './reload/reloads.js'
import type { AsyncRequests } from './request/async-requests.js'
import { BodyMemory } from './request/body/body.js'
import type { RequestRecord } from './request/record.js'
import { ConfigVersions } from './routing/config-versions.js'
import { DataServer } from './server/data-server.js'
import { removeStaleSocket } from './server/stale-socket.js'
import { openStore, reachesStore } from './shared-store.js'
import type { MetricJson, PortName, WorkersState } from './workers/protocol.js'

/** Options of a gateway besides its configuration. */
export interface GatewayOptions {
  /** Receives log entries. Default: lines of JSON on standard output. */
  log?: GatewayLog
  /** Reads the configuration again, for `reload`; throws if it is invalid. Default: `reload` is refused. */
  read?: () => GatewayConfig
  /** Reads the configuration that a reload would use, to check it beforehand. Default: `read`. */
  check?: () => GatewayConfig
  /** Set in a worker process: the admin port, reloads and metrics are those of all workers. Default: none. */
  supervisor?: GatewaySupervisor
  /** Time for the gateway's own waits and log, for tests. Guards use that of the system. Default: that of the system. */
  clock?: Clock
}

/** Services of the supervisor for a worker. */
export interface GatewaySupervisor {
  readonly slot: number
  workers(): WorkersState
  /** Reports that this worker is overloaded, or no longer is (`health.overload`). */
  overloaded(isOverloaded: boolean): void
  /** Of all workers, in the text format of Prometheus. */
  metrics(): Promise<string>
  snapshots(): Promise<object>
  /** Decisions of the other workers after these cursors, by slot. */
  readonly decisions: DashboardPeers['decisions']
  /** Data of the other workers about a request. */
  readonly find: NonNullable<DashboardPeers['find']>
  reload(cause: string): Promise<ReloadReport>
}

/** A running gateway. */
export interface Gateway {
  /** Listens, and returns the ports. In a worker the supervisor listens, and both ports are 0. */
  start(): Promise<{ port: number; adminPort: number }>
  /**
   * Serves a connection that the supervisor has accepted. False: it is not taken, because the gateway is being
   * drained. With `isLast` it is taken until the gateway is closed.
   */
  serve(port: PortName, socket: Socket, isLast: boolean): boolean
  /** Metrics of this process, for the supervisor. */
  metrics(): Promise<readonly MetricJson[]>
  /** Decisions of this process after a cursor, for the dashboard of another worker. */
  decisions(cursor: string | undefined): DecisionPage
  /** Data of this process about a request, for the dashboard of another worker. */
  find(requestId: string): KnownRequest
  /** Its guards and job queues. */
  readonly spillway: Spillway
  /** Resolves when it has been closed, also if an operator drained it. */
  readonly whenClosed: Promise<void>
  /** The mock vendor inside the gateway, if the configuration uses one. */
  readonly mock: MockVendor | undefined
  /**
   * Reads its configuration again and uses it from the next request on. An invalid one is refused and changes
   * nothing. `cause` is what triggered the reload, for the log.
   */
  reload(cause: string): Promise<ReloadReport>
  /**
   * Drains: readiness fails, new connections are refused, running requests finish. If it is called again, the
   * shorter time counts.
   * @param options - `graceMs`: longest time for running requests. `delayMs`: time between failing readiness
   * and closing the port. Range: from 0 ms. Default: `drain` of the configuration.
   */
  close(options?: { graceMs?: number; delayMs?: number }): Promise<void>
}

/** Defaults of the built-in mock vendor; the header `x-mock` overrides them. */
const MOCK_KNOBS = { latencyMs: 200, tokens: 24, tokenMs: 30 } as const

/** Time to return unfinished jobs to the store when a gateway closes. */
const GIVE_BACK_MS = 2_000
/** Time to log the requests that were cut off at the end. */
const LAST_LINES_MS = 2_000

/**
 * Creates a gateway from a checked configuration and connects it to its store.
 *
 * @example
 * const gateway = await createGateway(loadConfig({ file: 'spillway.yaml' }))
 * const { port } = await gateway.start()
 */
export async function createGateway(
  config: GatewayConfig,
  { log: given, read, check = read, supervisor, clock = systemClock }: GatewayOptions = {},
): Promise<Gateway> {
  let scrub = createScrub(config)
  const log =
    given ??
    createLog(config.log.level, (text) => scrub(text), {
      isShared: supervisor !== undefined,
      clock,
    })
  const { redis } = config
  // Before the store is opened, because its first event may come while the rest starts.
  const stopListening = onEvent((event) => {
    log.event(event)
    if (event.type === 'pod.command' && event.name === spillway.pod) void gateway.close()
  })
  const store = redis && openStore(redis)
  const genAi: GenAiRequests | undefined = config.telemetry.genAi
    ? new GenAiRequests(() => versions.current.config.vendors)
    : undefined
  const attributes = genAi && ((record: RequestRecord) => genAi.attributesOf(record))
  const tracing = config.tracing && (await loadTracing({ ...config.tracing, attributes }))
  const spillway = createSpillway({
    ...(store && { store }),
    ...podOptions(config, supervisor),
    ...(tracing && { tracer: tracing.guards }),
  })
  const health: Health = new Health({
    shared: () => spillway.health(),
    isOverloaded: () => overload?.isOverloaded === true,
    workers: supervisor && (() => supervisor.workers()),
  })
  const inside = await startMock(config, undefined)
  let mock = inside
  const reloads = new Reloads(clock)
  const metrics = createMetrics(
    spillway,
    () => data,
    reloads,
    () => versions.current.vendors.values(),
  )
  genAi?.recordTo(createGenAiMetrics({ registry: metrics.registry, ...(await loadMeter()) }))
  const hooks = {
    clock,
    onRecord(record: RequestRecord) {
      metrics.requests.add(record)
      genAi?.add(record)
      log.request(record)
      dashboard.noteRequest(record)
    },
    onFailure: (error: unknown) => log.failure(error),
    tracer: tracing?.requests,
    draining: false,
    bodyMemory: new BodyMemory(),
    asyncRequests: undefined as AsyncRequests | undefined,
  }
  const versions: ConfigVersions = new ConfigVersions(config, {
    spillway,
    hooks,
    urlOf: ({ url }) => (url === 'mock' ? (mock?.url ?? '') : url),
  })
  const jobs = config.jobQueues && new Jobs(config.jobQueues, versions, spillway, clock)
  hooks.asyncRequests = jobs
  const data: DataServer = new DataServer(versions, (path) => health.at(path), clock)
  const overload =
    config.health.overload &&
    new OverloadWatch({
      ...config.health.overload,
      inFlight: () => data.running,
      clock,
      onChange: (isOverloaded) => {
        const change = isOverloaded ? 'overloaded, not ready' : 'no longer overloaded'
        log.notice?.(isOverloaded ? 'error' : 'info', change, { option: 'health.overload' })
        supervisor?.overloaded(isOverloaded)
      },
    })
  // Each worker has its own mock vendor, so switches of one dashboard would not reach all of them.
  const demo =
    supervisor === undefined && inside
      ? createDemo(config, inside, spillway, () => address)
      : undefined
  const access = accessOf(config.admin)
  const operators = createOperatorAccess(access)
  const dashboard = createDashboard({
    spillway,
    path: DASHBOARD_PATH,
    ...access,
    ...(demo && { demo }),
    ...(supervisor && { peers: supervisor }),
  })
  const operator = () => {
    const { config: current } = versions.current
    const keys = keyNames(current.vendors)
    const { auditMs } = config.admin
    return createOperator({ store: spillway.store, guards: guardsOf(current), keys, auditMs })
  }
  // Without a shared store, operators act only through this gateway.
  const logActionElsewhere = (facts: object) =>
    log.notice?.('info', 'operator.acted-elsewhere', facts)
  const operatorLog = store && new OperatorLog(operator, logActionElsewhere, clock)
  const admin = createAdminServer({
    health,
    registry: {
      contentType: metrics.registry.contentType,
      metrics: () => supervisor?.metrics() ?? metrics.registry.metrics(),
    },
    spillway,
    snapshot: () => supervisor?.snapshots() ?? spillway.snapshot(),
    operator,
    access: operators,
    checkHost: createHostCheck(config.admin, operators),
    audit: (event) => log.event(event),
    config: {
      status: () => reloads.status(),
      ...(check && { check: () => checkConfig(check) }),
      ...(read && {
        reload: async (by: string) =>
          answerOf(await (supervisor?.reload ?? reload)(`admin: ${by}`)),
      }),
    },
    dashboard,
  })
  let address = ''
  let onClosed: (() => void) | undefined
  const whenClosed = new Promise<void>((resolve) => {
    onClosed = resolve
  })
  let reloading: Promise<unknown> = Promise.resolve()
  let closed: Promise<void> | undefined
  let endGrace: (() => void) | undefined

  async function drain(delayMs: number): Promise<void> {
    health.phase = 'draining'
    hooks.draining = true
    operatorLog?.close()
    // Running jobs may finish; no further job is started.
    const working = jobs?.drain()
    const graceOver = new Promise<void>((resolve) => {
      endGrace = resolve
    })
    await demo?.close().catch((error) => log.failure(error))
    // Load balancers should notice that this pod is not ready before it stops listening.
    if (delayMs > 0) await Promise.race([sleep(delayMs, clock), graceOver])
    await Promise.race([Promise.all([data.drain(), working]), graceOver])
    // Unfinished jobs are returned while the store is still open.
    await Promise.race([jobs?.drain(0), sleep(GIVE_BACK_MS, clock)])
    await spillway.close({ graceMs: 0 })
    await Promise.race([data.close(), sleep(LAST_LINES_MS, clock)])
    jobs?.close()
    await reloading
    await versions.close()
    await mock?.vendor.close()
    dashboard.close()
    overload?.close()
    await admin.close()
    await store?.close()
    stopListening()
    log.close()
    onClosed?.()
  }

  async function takeOver(): Promise<ReloadReport> {
    if (read === undefined) return reloads.refused('there is no file to read again')
    if (closed !== undefined) return reloads.refused('the gateway is being closed')
    const before = versions.current.config
    let next: GatewayConfig
    try {
      next = read()
    } catch (error) {
      return reloads.refused(error instanceof Error ? error.message : String(error))
    }
    const bound = boundVendor(before, next)
    if (bound !== undefined) return reloads.refused(bound)
    const changes = changesBetween(before, next)
    const { added, changed, removed } = changes
    if (added.length + changed.length + removed.length === 0) return reloads.unchanged(changes)
    try {
      mock = await startMock(next, mock)
      if (closed !== undefined) return reloads.refused('the gateway is being closed')
      versions.replace(applicable(before, next))
    } catch (error) {
      log.failure(error)
      return reloads.refused(error instanceof Error ? error.message : String(error))
    }
    // Old secrets stay hidden, because some are in use until a restart.
    const [older, newer] = [scrub, createScrub(next)]
    scrub = (text) => newer(older(text))
    log.setLevel?.(next.log.level)
    return reloads.applied(changes)
  }

  async function reload(cause: string): Promise<ReloadReport> {
    // Sequentially: each reload is compared with the active configuration.
    const report = reloading.then(takeOver)
    reloading = report.catch(() => {})
    const { result, ...facts } = await report
    const worth = result === 'refused' ? 'error' : 'info'
    log.notice?.(worth, `configuration ${result}`, { cause, ...facts })
    return { result, ...facts } as ReloadReport
  }

  async function listen(): Promise<{ port: number; adminPort: number }> {
    const adminPort = await admin.listen(config.admin)
    if (config.listen !== undefined) await removeStaleSocket(config.listen)
    return { port: await data.listen(listenAddress(config)), adminPort }
  }

  const gateway: Gateway = {
    spillway,
    mock: inside?.vendor,
    whenClosed,
    reload,
    async start() {
      const ports = supervisor === undefined ? await listen() : { port: 0, adminPort: 0 }
      // Jobs are in the store, so without it they cannot run.
      if (jobs !== undefined && store !== undefined) await reachesStore(store, clock)
      jobs?.begin()
      operatorLog?.begin()
      address = `http://127.0.0.1:${ports.port}`
      health.phase = 'ready'
      return ports
    },
    serve(port, socket, isLast) {
      return port === 'data' ? data.serve(socket, isLast) : admin.serve(socket)
    },
    decisions: (cursor) => dashboard.decisions(cursor),
    find: (requestId) => dashboard.find(requestId),
    metrics: () => metrics.registry.getMetricsAsJSON() as Promise<readonly MetricJson[]>,
    async close(options = {}) {
      const { graceMs, delayMs } = { ...versions.current.config.drain, ...options }
      closed ??= drain(delayMs)
      const patience = clock.schedule(delayMs + graceMs, () => endGrace?.())
      await closed.finally(() => patience.cancel())
    },
  }
  return gateway
}

/** Every worker is a separate pod. `expectedPods` counts gateways. */
function podOptions(
  { pod, expectedPods, workers }: GatewayConfig,
  supervisor: GatewaySupervisor | undefined,
): { pod?: string; expectedPods: number } {
  if (supervisor === undefined) return { ...(pod !== undefined && { pod }), expectedPods }
  const worker = `worker-${supervisor.slot}`
  return {
    pod: pod === undefined ? worker : `${pod}-${worker}`,
    expectedPods: expectedPods * workers,
  }
}

/** Only without configured callers, because the demo has no key. */
function createDemo(
  { vendors, callers, jobQueues }: GatewayConfig,
  { vendor: mock, url: mockUrl }: RunningMock,
  { store }: Spillway,
  gatewayUrl: () => string,
): Demo | undefined {
  if (callers !== undefined) return undefined
  const mocked = vendors.filter(({ url }) => url === 'mock')
  return new Demo({ vendors: mocked, jobQueues, mock, mockUrl, store, gatewayUrl })
}

function guardsOf({ vendors }: GatewayConfig): Record<string, VendorConfig['guard']> {
  return Object.fromEntries(vendors.map(({ name, guard }) => [name, guard]))
}

/** Whether the configuration on the disk is valid. */
function checkConfig(read: () => GatewayConfig): ConfigAnswer {
  try {
    const { vendors, routes } = read()
    return {
      ok: true,
      message: `${counted(vendors.length, 'vendor')}, ${counted(routes.length, 'route')}`,
    }
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : String(error) }
  }
}

function answerOf(report: ReloadReport): ConfigAnswer {
  const message = report.result === 'refused' ? report.reason : report.result
  return { ok: report.result !== 'refused', message, report }
}

/** The built-in mock vendor, started when a vendor has `url: mock`. */
async function startMock(
  { vendors }: GatewayConfig,
  running: RunningMock | undefined,
): Promise<RunningMock | undefined> {
  if (running !== undefined || !vendors.some(({ url }) => url === 'mock')) return running
  const vendor = createMockVendor({ knobs: MOCK_KNOBS })
  return { vendor, url: (await vendor.start()).url }
}

interface RunningMock {
  readonly vendor: MockVendor
  readonly url: string
}

function sleep(ms: number, clock: Clock): Promise<void> {
  return new Promise((resolve) => clock.schedule(ms, resolve).unref())
}
