/** What Prometheus is told. Requests are counted as they end; how guards stand is read when asked. */
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { Spillway } from 'spillway'
import type { RequestRecord } from '../data/record.js'
import { AllSeries, type Series } from './series.js'

const STATES = ['closed', 'open', 'half-open', 'isolated'] as const

const STORE_STATUSES = ['starting', 'shared', 'away', 'apart', 'off'] as const

/** Lanes are named after models, and those after what clients send. */
const MOST_LANES = 100

export interface GatewayMetrics {
  readonly registry: Registry
  request(record: RequestRecord): void
}

export function createMetrics(spillway: Spillway, running: () => number): GatewayMetrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })

  const series = new AllSeries()
  addCounters(registry, series)
  addGauges(registry, spillway, running)

  return {
    registry,
    request: (record) => series.add(record),
  }
}

function addCounters(registry: Registry, series: AllSeries): void {
  const seconds = {
    name: 'spillway_request_seconds',
    help: 'From the first byte of a request to the last of its answer.',
  }
  const firstByte = {
    name: 'spillway_first_byte_seconds',
    help: 'From the first byte of a request to the first of its answer.',
  }
  const counter = (
    name: string,
    help: string,
    labels: readonly string[],
    read: (series: Series) => Iterable<readonly [Record<string, string>, number]>,
  ) => series.counter(registry, { name, help, labels }, read)

  counter(
    'spillway_requests_total',
    'Requests by route, vendor, status, and why they were refused or failed.',
    ['route', 'vendor', 'status', 'reason'],
    ({ requests }) => [[{}, requests]],
  )
  series.histogram(registry, seconds, ({ durations }) => durations)
  series.histogram(registry, firstByte, ({ firstBytes }) => firstBytes)
  counter(
    'spillway_attempts_total',
    'Requests made to vendors, retries included.',
    [],
    ({ attempts }) => Array.from(attempts, ([vendor, count]) => [{ vendor }, count] as const),
  )
  counter(
    'spillway_fallbacks_total',
    'Requests answered by another target than the one that was meant.',
    ['route', 'vendor'],
    ({ fallbacks }) => [[{}, fallbacks]],
  )
  counter(
    'spillway_bodies_total',
    'How answers ended: complete, truncated, stalled, abandoned, aborted.',
    ['vendor'],
    ({ ends }) => Array.from(ends, ([end, count]) => [{ end }, count] as const),
  )
  counter(
    'spillway_tokens_total',
    'Tokens, as vendors count them in their answers.',
    ['vendor'],
    ({ inputTokens, outputTokens }) => [
      [{ kind: 'input' }, inputTokens],
      [{ kind: 'output' }, outputTokens],
    ],
  )
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
        for (const { lane, state } of breakers.slice(0, MOST_LANES)) {
          for (const each of STATES)
            this.set({ vendor: name, lane, state: each }, each === state ? 1 : 0)
        }
      }
    },
  })
  new Gauge({
    name: 'spillway_store_status',
    help: 'One for how the shared store stands for a vendor, zero for the others.',
    labelNames: ['vendor', 'status'],
    registers,
    collect() {
      this.reset()
      for (const { name, store } of guards()) {
        if (store === undefined) continue
        for (const each of STORE_STATUSES) {
          this.set({ vendor: name, status: each }, each === store.status ? 1 : 0)
        }
      }
    },
  })
  new Gauge({
    name: 'spillway_store_pods',
    help: 'Pods among which limits are shared, and those of them that are not heard of.',
    labelNames: ['vendor', 'kind'],
    registers,
    collect() {
      this.reset()
      for (const { name, store } of guards()) {
        if (store === undefined) continue
        this.set({ vendor: name, kind: 'all' }, store.pods)
        this.set({ vendor: name, kind: 'missing' }, store.missing)
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
