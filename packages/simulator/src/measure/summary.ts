/** A run as plain data: what the report draws and `--json` prints. */
import type { CheckedScenario } from '../scenario/read-scenario.js'
import { Latencies } from './latencies.js'
import { capacityRps } from './metrics.js'
import type { BreakerState, ClientRecord, RunRecord } from './run-record.js'

export interface RunSummary {
  stretchMs: number
  totals: {
    requests: number
    served: number
    vendorCalls: number
    throttled: number
    storeCommands: number
    /** Refusals by code, and failures that were no refusal. */
    refused: Record<string, number>
    failed: number
    p50Ms: number | null
    p99Ms: number | null
  }
  /** What the vendor can do in a second; nothing: any number. */
  capacityRps: number | null
  /** Calls it works on at once. */
  capacity: number | null
  /** By stretch. Counts are for the whole stretch, not for a second. */
  series: {
    offered: number[]
    served: number[]
    failed: number[]
    refused: Record<string, number[]>
    vendorCalls: number[]
    vendorAtOnce: number[]
    throttled: number[]
    pods: number[]
    waiting: number[]
    storeCommands: number[]
    p50Ms: (number | null)[]
    p99Ms: (number | null)[]
    /** The fullest window of the vendor's first limit, as a share; empty without limits. */
    windowUse: number[]
  }
  /** By client: share of requests served, by when they came. */
  clients: Record<string, { requests: number; served: number }>
  breaker: { atMs: number; state: BreakerState }[]
}

export function summarise(record: RunRecord, scenario: CheckedScenario): RunSummary {
  const clients = [...record.clients.values()]
  const offered = addUp(clients, 'offered', record.stretches + 1)
  const during = (counts: Float64Array) => [...counts.subarray(0, record.stretches)]
  const all = new Latencies()
  const latencies = Array.from({ length: record.stretches }, (_, at) => latenciesOf(clients, at))
  for (const each of latencies) all.addAll(each)
  const rps = capacityRps(scenario)
  return {
    stretchMs: record.stretchMs,
    totals: {
      requests: total(offered),
      served: total(record.answered),
      vendorCalls: total(record.vendorCalls),
      throttled: total(record.throttled),
      storeCommands: total(record.storeCommands),
      refused: mapOf(record.refused, total),
      failed: total(record.failed),
      p50Ms: rounded(all.percentile(0.5)),
      p99Ms: rounded(all.percentile(0.99)),
    },
    capacityRps: Number.isFinite(rps) ? rps : null,
    capacity: scenario.vendor.capacity ?? null,
    series: {
      offered: during(offered),
      served: during(record.answered),
      failed: during(record.failed),
      refused: mapOf(record.refused, during),
      vendorCalls: during(record.vendorCalls),
      vendorAtOnce: during(record.vendorAtOnce),
      throttled: during(record.throttled),
      pods: during(record.pods),
      waiting: during(record.waiting),
      storeCommands: during(record.storeCommands),
      p50Ms: latencies.map((each) => rounded(each.percentile(0.5))),
      p99Ms: latencies.map((each) => rounded(each.percentile(0.99))),
      windowUse: record.windowUse,
    },
    clients: Object.fromEntries(
      clients.map(({ name, offered: came, served }) => [
        name,
        { requests: total(came), served: total(served) },
      ]),
    ),
    breaker: record.breaker,
  }
}

function addUp(clients: readonly ClientRecord[], what: 'offered', length: number): Float64Array {
  const sums = new Float64Array(length)
  for (const client of clients) for (let at = 0; at < length; at++) sums[at]! += client[what][at]!
  return sums
}

function latenciesOf(clients: readonly ClientRecord[], at: number): Latencies {
  const all = new Latencies()
  for (const { good } of clients) if (good[at] !== undefined) all.addAll(good[at])
  return all
}

function mapOf<T>(
  counts: ReadonlyMap<string, Float64Array>,
  of: (counts: Float64Array) => T,
): Record<string, T> {
  const sorted = [...counts].sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(sorted.map(([code, each]) => [code, of(each)]))
}

function total(numbers: Float64Array): number {
  return numbers.reduce((sum, each) => sum + each, 0)
}

function rounded(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.round(ms * 10) / 10
}
