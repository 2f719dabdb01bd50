// test-group: io, slow

/** Every query of the Grafana dashboards and alerts, evaluated by a Prometheus that scrapes two gateways. */
import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import {
  hasPrometheus,
  type PrometheusServer,
  startPrometheus,
} from '../../spillway/test/prometheus-server.js'
import { type RedisServer, startRedis } from '../../spillway/test/redis-server.js'
import { type RunningGateway, startGateway } from './gateway-kit.js'

const DEPLOY = new URL('../../../deploy/', import.meta.url)
const DASHBOARDS = new URL('grafana/', DEPLOY)

interface Dashboard {
  panels: { title: string; targets?: { expr: string }[] }[]
}

interface Query {
  readonly place: string
  readonly expr: string
}

/** The queries of all panels, with values in place of Grafana's variables. */
const PANEL_QUERIES = readdirSync(DASHBOARDS).flatMap((file): Query[] => {
  const { panels } = JSON.parse(readFileSync(new URL(file, DASHBOARDS), 'utf8')) as Dashboard
  return panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({ place: `${file}: ${title}`, expr: withValues(expr) })),
  )
})

function withValues(expr: string): string {
  return expr
    .replaceAll('$__rate_interval', '30s')
    .replaceAll('$vendor', 'openai')
    .replaceAll('$route', '.*')
}

const { groups } = parse(readFileSync(new URL('prometheus/alerts.yaml', DEPLOY), 'utf8')) as {
  groups: { rules: { alert: string; expr: string }[] }[]
}
const ALERTS = groups.flatMap(({ rules }) => rules)

const ENV = { KEY: 'sk-0123456789abcdef', CALLER: 'caller-0123456789abcdef' }

const config = (url: string) => ({
  // A busy machine is not an outage.
  redis: { url, commandTimeoutMs: '10s' },
  callers: [{ key: 'env:CALLER', user: 'ann', tier: 'free' }],
  vendors: {
    openai: {
      protocol: 'openai',
      key: 'env:KEY',
      shed: { maxQueue: 100 },
      userLimits: [{ per: 'user', limit: 20, windowMs: '1m' }],
      queue: { size: 50, timeoutMs: '200ms' },
      breaker: { failureRate: 0.9, minimumCalls: 1_000, openMs: '30s' },
      limits: [{ unit: 'requests', limit: 10, windowMs: '1s' }],
      concurrency: { limit: 20 },
      retry: { attempts: 2, baseMs: 1 },
      shadow: ['user-limit'],
    },
  },
  routes: [
    { vendor: 'openai', models: ['static'], fallbacks: [{ static: 'Please try again.' }] },
    { vendor: 'openai' },
  ],
  jobQueues: { night: { vendor: 'openai', model: 'gpt', timeoutMs: '1h' } },
})

describe.skipIf(!hasPrometheus)('Grafana dashboards', () => {
  let redis: RedisServer
  let prometheus: PrometheusServer | undefined

  beforeAll(async () => {
    redis = await startRedis()
  })
  afterAll(async () => {
    await prometheus?.stop()
    await redis?.stop()
  })

  it('every panel query returns data, and every alert expression is valid', async () => {
    const gateways = [
      await startGateway(config(redis.url), {}, ENV),
      await startGateway(config(redis.url), {}, ENV),
    ]
    const ports = gateways.map(({ adminUrl }) => Number(new URL(adminUrl).port))
    prometheus = await startPrometheus(ports, { intervalMs: 1_000 })
    const { ask } = prometheus
    await expect.poll(() => ask('sum(up)')).toEqual([2])

    const withoutData = async () => {
      await Promise.all(gateways.map(sendTraffic))
      const evaluations = PANEL_QUERIES.map(async ({ place, expr }) => ({
        place,
        values: await ask(expr),
      }))
      const answers = await Promise.all(evaluations)
      // A percentile without any value is NaN.
      const isEmpty = (values: number[] = []) => !values.some(Number.isFinite)
      return answers.filter(({ values }) => isEmpty(values)).map(({ place }) => place)
    }
    await expect.poll(withoutData, { interval: 500 }).toEqual([])
    for (const { alert, expr } of ALERTS) expect(await ask(expr), alert).toBeInstanceOf(Array)
  })
})

/** Answers, streams, errors, retries, a fallback, a job, and more calls than the limits allow. */
async function sendTraffic({ chat }: RunningGateway): Promise<void> {
  const ours = { authorization: `Bearer ${ENV.CALLER}` }
  const fails = { 'x-mock': JSON.stringify({ status: 500 }) }
  const requests = [
    chat({}, { headers: ours }),
    chat({ stream: true }, { headers: ours }),
    chat({}, { headers: { ...ours, ...fails } }),
    chat({ model: 'static' }, { headers: { ...ours, ...fails } }),
    chat({}, { headers: { ...ours, prefer: 'respond-async' } }),
    ...Array.from({ length: 5 }, () => chat({}, { headers: ours })),
    chat({}, { headers: { authorization: 'Bearer unknown' } }),
  ]
  for (const response of await Promise.all(requests)) await response.text()
}
