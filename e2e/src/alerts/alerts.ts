/**
 * Provokes every alert of deploy/prometheus/alerts.yaml in a real Prometheus that scrapes two gateways with a real Redis,
 * and waits until it has ended again. The durations in the rules are divided by 60, see scaled-rules.ts.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createMockVendor } from '@spillway/mock-vendor'
import { freePort } from '../faults/fleet.js'
import { type RedisProcess, startRedis } from '../faults/redis-process.js'
import type { GatewayProcess } from '../gateway-process.js'
import { type Alert, type PrometheusProcess, startPrometheus } from '../prometheus-process.js'
import { atLeast, atMost, type Figure, type Scenario } from '../scenario.js'
import { operate, sendRequests, startOne } from './fleet.js'
import { SCALE, scaledRules } from './scaled-rules.js'

const INTERVAL_MS = 1_000
const LOOK_EVERY_MS = 200
/** Longest time for one step: until its alerts fire, or until all alerts have ended. */
const STEP_MS = 45_000

/** Alerts that load provokes, with the vendor that each has to name. The error budget is that of all requests. */
const BY_LOAD = {
  SpillwayBreakerOpen: { vendor: 'failing' },
  SpillwayLimitNearlyUsed: { vendor: 'limited' },
  SpillwayRefusals: { vendor: 'limited', code: 'VENDOR_LIMITED' },
  SpillwayQueueWait: { vendor: 'slow' },
  SpillwayErrorBudgetBurnFast: {},
  SpillwayErrorBudgetBurnSlow: {},
  SpillwayKeyQuarantined: { vendor: 'unpaid' },
} as const

export const alerts: Scenario = {
  name: 'alerts',
  what: `every Prometheus alert fires and ends, with durations divided by ${SCALE}`,
  seconds: 120,
  run: provokeAll,
}

async function provokeAll(): Promise<Figure[]> {
  const rules = scaledRules()
  const vendor = createMockVendor({
    knobs: { latencyMs: 20 },
    models: {
      failing: { status: 500 },
      slow: { latencyMs: 1_000 },
      unpaid: { error: 'quota-exhausted' },
    },
  })
  const { url: vendorUrl } = await vendor.start()
  let redis = await startRedis(await freePort())
  const start = () => startOne(vendorUrl, redis.port)
  const fleet = await Promise.all([start(), start()])
  const prometheus = await startPrometheus(rules.yaml, adminUrls(fleet), {
    intervalMs: INTERVAL_MS,
  })
  const watch = new AlertWatch(prometheus)
  const urls = () => fleet.map(({ url }) => url)
  const background = sendRequests(urls, 'healthy', { clients: 4, restMs: 200 })
  const loads = (['failing', 'limited', 'slow', 'unpaid'] as const).map((model) =>
    sendRequests(urls, model, { clients: model === 'slow' ? 60 : 3, restMs: 100 }),
  )
  try {
    await watch.untilFiring(BY_LOAD)
    const stages = watch.valuesOf('SpillwayRefusals', 'stage')
    await Promise.all(loads.map((load) => load.stop()))
    vendor.set({ errorRate: 0 }, 'failing')
    vendor.set({ errorRate: 0 }, 'unpaid')
    for (const key of watch.valuesOf('SpillwayKeyQuarantined', 'key')) {
      await operate('key', 'release', 'unpaid', key, '--admin', fleet[0].adminUrl)
    }
    const recovery = sendRequests(urls, 'failing', { clients: 2, restMs: 100 })
    redis = await loseRedis(redis, watch)
    await loseGateway(fleet, start, prometheus, watch)
    await watch.untilNoAlerts()
    await recovery.stop()
    return [
      ...rules.alerts.map((name) => watch.figureOf(name)),
      atMost('longest until an alert ended, s', watch.longestEndSeconds(), STEP_MS / 1_000),
      atMost('alerts that did not end', watch.firing().length, 0),
      atLeast('stages that SpillwayRefusals named', stages.size, 2),
    ]
  } finally {
    await Promise.all([background, ...loads].map((load) => load.stop()))
    await watch.stop()
    await prometheus.stop()
    await Promise.all(fleet.map((gateway) => gateway.stop()))
    await vendor.close()
    await redis.stop()
  }
}

/** Redis is killed, and starts again without its data. */
async function loseRedis(redis: RedisProcess, watch: AlertWatch): Promise<RedisProcess> {
  watch.startStep()
  await redis.kill()
  await watch.untilFiring({ SpillwayStoreUnreachable: {} })
  watch.startStep()
  const empty = await startRedis(redis.port)
  await watch.untilFiring({ SpillwayStoreEpochChanged: {} })
  return empty
}

/** One gateway is killed and, when the alert fires, replaced by another. */
async function loseGateway(
  fleet: GatewayProcess[],
  start: () => Promise<GatewayProcess>,
  prometheus: PrometheusProcess,
  watch: AlertWatch,
): Promise<void> {
  const lost = fleet.pop() as GatewayProcess
  watch.startStep()
  lost.signal('SIGKILL')
  await watch.untilFiring({ SpillwayPodMissing: { instance: new URL(lost.adminUrl).host } })
  await lost.stop()
  fleet.push(await start())
  prometheus.scrape(adminUrls(fleet))
}

function adminUrls(fleet: readonly GatewayProcess[]): string[] {
  return fleet.map(({ adminUrl }) => adminUrl)
}

type Expected = Readonly<Record<string, Readonly<Record<string, string>>>>

/** Records when each alert fired and when it ended. */
class AlertWatch {
  readonly #prometheus: PrometheusProcess
  readonly #firedAfterMs = new Map<string, number>()
  readonly #seen: Alert[] = []
  readonly #running: Promise<void>
  #stepMs = performance.now()
  #now: readonly Alert[] = []
  #longestEndMs = 0
  #isOver = false

  constructor(prometheus: PrometheusProcess) {
    this.#prometheus = prometheus
    this.#running = this.#keepPolling()
  }

  /** Times of alerts count from here. */
  startStep(): void {
    this.#stepMs = performance.now()
  }

  firing(): readonly Alert[] {
    return this.#now.filter(({ state }) => state === 'firing')
  }

  /** Values of a label in all alerts of this name that fired. */
  valuesOf(name: string, label: string): Set<string> {
    const values = this.#seen.map(({ labels }) => (labels.alertname === name ? labels[label] : ''))
    return new Set(values.filter((value) => value !== undefined && value !== '') as string[])
  }

  /** Resolves when all of these fire or have fired with these labels, or after the longest time. */
  async untilFiring(expected: Expected): Promise<void> {
    const missing = new Map(Object.entries(expected))
    while (missing.size > 0 && this.#inTime()) {
      await sleep(LOOK_EVERY_MS)
      for (const [name, labels] of missing) {
        const found = this.#seen.some((alert) => fits(alert, { alertname: name, ...labels }))
        if (!found) continue
        this.#firedAfterMs.set(name, performance.now() - this.#stepMs)
        missing.delete(name)
      }
    }
  }

  /** Resolves when no alert fires, or after the longest time. */
  async untilNoAlerts(): Promise<void> {
    this.startStep()
    while (this.firing().length > 0 && this.#inTime()) await sleep(LOOK_EVERY_MS)
    this.#longestEndMs = performance.now() - this.#stepMs
  }

  longestEndSeconds(): number {
    return this.#longestEndMs / 1_000
  }

  figureOf(name: string): Figure {
    const afterMs = this.#firedAfterMs.get(name) ?? Number.POSITIVE_INFINITY
    return atMost(`${name} fires, s`, afterMs / 1_000, STEP_MS / 1_000)
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await this.#running
  }

  #inTime(): boolean {
    return performance.now() - this.#stepMs < STEP_MS
  }

  async #keepPolling(): Promise<void> {
    while (!this.#isOver) {
      this.#now = await this.#prometheus.alerts()
      for (const alert of this.firing().filter((each) => !this.#isKnown(each))) {
        this.#seen.push(alert)
        process.stderr.write(`  fires: ${JSON.stringify(alert.labels)}\n`)
      }
      await sleep(LOOK_EVERY_MS)
    }
  }

  #isKnown({ labels }: Alert): boolean {
    return this.#seen.some((seen) => fits(seen, labels))
  }
}

function fits({ labels }: Alert, expected: Readonly<Record<string, string>>): boolean {
  return Object.entries(expected).every(([name, value]) => labels[name] === value)
}
