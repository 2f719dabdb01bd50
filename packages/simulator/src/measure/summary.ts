/** A run as plain data, for the report and for `--json`. */
import type { CheckedScenario } from '../scenario/read-scenario.js'
import { Latencies } from './latencies.js'
import { capacityRps } from './metrics.js'
import type { BreakerState, ClientRecord, RunRecord } from './run-record.js'

/** A run as plain data, for the report and for `--json`. */
export interface RunSummary {
  /** Length of one interval of `series`. */
  stretchMs: number
  /** Counts of the whole run. */
  totals: {
    /** Requests of all clients. */
    requests: number
    /** Requests with a good answer in time. */
    served: number
    /** Calls that reached the vendor. */
    vendorCalls: number
    /** Calls that the vendor answered with 429. */
    throttled: number
    /** Commands sent to the store. */
    storeCommands: number
    /** Refusals by code. */
    refused: Record<string, number>
    /** Failures that were no refusal. */
    failed: number
    /** Median time to a good answer; null without one. */
    p50Ms: number | null
    /** 99th percentile of the time to a good answer; null without one. */
    p99Ms: number | null
  }
  /** Calls per second that the vendor can process; null: any number. */
  capacityRps: number | null
  /** Calls that the vendor processes at once; null: any number. */
  capacity: number | null
  /** Values by interval. Counts are for the whole interval, not per second. */
  series: {
    /** Requests of the clients. */
    offered: number[]
    /** Requests with a good answer in time, by their arrival. */
    served: number[]
    /** Failures that were no refusal. */
    failed: number[]
    /** Refusals by code. */
    refused: Record<string, number[]>
    /** Calls that reached the vendor. */
    vendorCalls: number[]
    /** Most calls at the vendor at once. */
    vendorAtOnce: number[]
    /** Calls that the vendor answered with 429. */
    throttled: number[]
    /** Live pods. */
    pods: number[]
    /** Most calls that waited in the pods. */
    waiting: number[]
    /** Commands sent to the store. */
    storeCommands: number[]
    /** Median time to a good answer. */
    p50Ms: (number | null)[]
    /** 99th percentile of the time to a good answer. */
    p99Ms: (number | null)[]
    /** The fullest window of the vendor's first limit, as a fraction of it; empty without limits. */
    windowUse: number[]
  }
  /** Requests by client, and how many of them were served. */
  clients: Record<string, { requests: number; served: number }>
  /** State changes of the breaker. */
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
