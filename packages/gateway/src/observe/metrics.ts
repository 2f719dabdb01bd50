/** What Prometheus is told. Requests are counted as they end; how guards stand is read when asked. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Spillway } from 'spillway'
import type { RequestRecord } from '../data/record.js'

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]
const STATES = ['closed', 'open', 'half-open', 'isolated'] as const

export interface GatewayMetrics {
  readonly registry: Registry
  request(record: RequestRecord): void
}

export function createMetrics(spillway: Spillway, running: () => number): GatewayMetrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })

  const requests = new Counter({
    name: 'spillway_requests_total',
    help: 'Requests by route, vendor, status, and why they were refused or failed.',
    labelNames: ['route', 'vendor', 'status', 'reason'],
    registers,
  })
  const duration = new Histogram({
    name: 'spillway_request_seconds',
    help: 'From the first byte of a request to the last of its answer.',
    labelNames: ['route', 'vendor'],
    buckets: SECONDS,
    registers,
  })
  const firstByte = new Histogram({
    name: 'spillway_first_byte_seconds',
    help: 'From the first byte of a request to the first of its answer.',
    labelNames: ['route', 'vendor'],
    buckets: SECONDS,
    registers,
  })
  const attempts = new Counter({
    name: 'spillway_attempts_total',
    help: 'Requests made to vendors, retries included.',
    labelNames: ['vendor'],
    registers,
  })
  const fallbacks = new Counter({
    name: 'spillway_fallbacks_total',
    help: 'Requests answered by another target than the one that was meant.',
    labelNames: ['route', 'vendor'],
    registers,
  })
  const bodies = new Counter({
    name: 'spillway_bodies_total',
    help: 'How answers ended: complete, truncated, stalled, abandoned, aborted.',
    labelNames: ['vendor', 'end'],
    registers,
  })
  const tokens = new Counter({
    name: 'spillway_tokens_total',
    help: 'Tokens, as vendors count them in their answers.',
    labelNames: ['vendor', 'kind'],
    registers,
  })
  addGauges(registry, spillway, running)

  return {
    registry,
    request(record) {
      const { route = '', vendor = '', usage } = record
      requests.inc({ route, vendor, status: record.status, reason: record.code ?? '' })
      duration.observe({ route, vendor }, record.durationMs / 1_000)
      if (record.firstByteMs !== undefined) {
        firstByte.observe({ route, vendor }, record.firstByteMs / 1_000)
      }
      if (record.attempts > 0) attempts.inc({ vendor }, record.attempts)
      if (record.step > 0 && record.code === undefined) fallbacks.inc({ route, vendor })
      if (record.end !== undefined) bodies.inc({ vendor, end: record.end })
      if (usage?.inputTokens !== undefined) tokens.inc({ vendor, kind: 'input' }, usage.inputTokens)
      if (usage?.outputTokens !== undefined)
        tokens.inc({ vendor, kind: 'output' }, usage.outputTokens)
    },
  }
}

/** How everything stands, at the moment somebody asks. */
function addGauges(registry: Registry, spillway: Spillway, running: () => number): void {
  const registers = [registry]
  const guards = () => spillway.snapshot().guards
  new Gauge({
    name: 'spillway_requests_running',
    help: 'Requests inside the gateway.',
    registers,
    collect() {
      this.set(running())
    },
  })
  new Gauge({
    name: 'spillway_calls_active',
    help: 'Calls that hold a slot.',
    labelNames: ['vendor'],
    registers,
    collect() {
      for (const { name, active } of guards()) this.set({ vendor: name }, active)
    },
  })
  new Gauge({
    name: 'spillway_calls_waiting',
    help: 'Calls in the waiting room.',
    labelNames: ['vendor', 'priority'],
    registers,
    collect() {
      for (const { name, room } of guards()) {
        for (const [priority, count] of Object.entries(room.byPriority)) {
          this.set({ vendor: name, priority }, count)
        }
      }
    },
  })
  new Gauge({
    name: 'spillway_breaker_state',
    help: 'One for the state a breaker is in, zero for the others.',
    labelNames: ['vendor', 'lane', 'state'],
    registers,
    collect() {
      this.reset()
      for (const { name, breakers } of guards()) {
        for (const { lane, state } of breakers) {
          for (const each of STATES)
            this.set({ vendor: name, lane, state: each }, each === state ? 1 : 0)
        }
      }
    },
  })
  new Counter({
    name: 'spillway_refused_total',
    help: 'Calls that guards refused, by stage and code.',
    labelNames: ['vendor', 'stage', 'code'],
    registers,
    collect() {
      this.reset()
      for (const { name, refused } of guards()) {
        for (const { stage, code, count } of refused) this.inc({ vendor: name, stage, code }, count)
      }
    },
  })
}
