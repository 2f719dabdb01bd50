/** Computes the metrics of expectations from the record of a run. */
import type { MetricName } from '../scenario/metric-names.js'
import type { CheckedExpectation, CheckedScenario } from '../scenario/read-scenario.js'
import { meanOf } from '../scenario/spread.js'
import { Latencies } from './latencies.js'
import type { ClientRecord, RunRecord } from './run-record.js'

const WELL = 0.9

/** A part of a record: intervals, and the client whose requests count. */
interface View {
  readonly record: RunRecord
  readonly clients: readonly ClientRecord[]
  readonly from: number
  readonly until: number
  readonly scenario: CheckedScenario
  readonly naive: RunRecord
}

type Metric = (view: View) => number

const METRIC: Record<MetricName, Metric> = {
  served: (view) => servedShare(view, view.from, view.until),
  goodput(view) {
    const { record, scenario, from, until } = view
    const seconds = ((until - from) * record.stretchMs) / 1_000
    return sum(record.answered, from, until) / seconds / capacityRps(scenario)
  },
  amplification: ({ record, clients, from, until }) =>
    sum(record.vendorCalls, from, until) / sumOf(clients, 'offered', from, until),
  attemptsPerCall({ record, from, until }) {
    const started = sum(record.firstAttempts, from, until)
    return started === 0 ? 0 : sum(record.vendorCalls, from, until) / started
  },
  p50Ms: (view) => percentile(view, 'good', 0.5),
  p99Ms: (view) => percentile(view, 'good', 0.99),
  endedP99Ms: (view) => percentile(view, 'ended', 0.99),
  recoveredMs(view) {
    const { record, clients, from, until } = view
    for (let at = until - 1; at >= from; at--) {
      const came = sumOf(clients, 'offered', at, at + 1)
      if (came === 0 || servedShare(view, at, at + 1) >= WELL) continue
      return at === until - 1 ? Number.POSITIVE_INFINITY : (at + 1 - from) * record.stretchMs
    }
    return 0
  },
  worstWindow: ({ record }) => Math.max(0, ...record.worstWindows),
  throttled: ({ record, from, until }) => sum(record.throttled, from, until),
  throttledShare: ({ record, from, until }) =>
    sum(record.throttled, from, until) / Math.max(1, sum(record.vendorCalls, from, until)),
  limitUse({ record, from, until }) {
    const accepted = sum(record.vendorCalls, from, until) - sum(record.throttled, from, until)
    return accepted / sum(record.allowed, from, until)
  },
  throttledOfNaive({ record, naive, from, until }) {
    const naiveThrottled = sum(naive.throttled, from, until)
    return naiveThrottled === 0 ? 0 : sum(record.throttled, from, until) / naiveThrottled
  },
  vendorAtOnce: ({ record, scenario, from, until }) =>
    most(record.vendorAtOnce, from, until) / (scenario.vendor.capacity ?? Number.POSITIVE_INFINITY),
  probesAtOnce: ({ record }) => record.probesAtOnce,
  opens: ({ record }) => record.opens,
  waiting: ({ record, from, until }) => most(record.waiting, from, until),
}

export function measure(
  { metric, fromMs, untilMs, client }: CheckedExpectation,
  record: RunRecord,
  naive: RunRecord,
  scenario: CheckedScenario,
): number {
  const clients = [...record.clients.values()].filter(({ name }) => !client || name === client)
  const from = Math.min(record.stretches - 1, Math.round(fromMs / record.stretchMs))
  const end = untilMs === undefined ? record.stretches : Math.round(untilMs / record.stretchMs)
  const until = Math.max(from + 1, Math.min(record.stretches, end))
  return METRIC[metric]({ record, clients, from, until, scenario, naive })
}

export function capacityRps({ vendor }: CheckedScenario): number {
  return ((vendor.capacity ?? Number.POSITIVE_INFINITY) * 1_000) / meanOf(vendor.serviceMs)
}

function servedShare({ clients }: View, from: number, until: number): number {
  const stayed = sumOf(clients, 'offered', from, until) - sumOf(clients, 'left', from, until)
  return stayed === 0 ? 1 : sumOf(clients, 'served', from, until) / stayed
}

function percentile({ clients, from, until }: View, which: 'good' | 'ended', part: number): number {
  const all = new Latencies()
  for (const client of clients) {
    for (const each of client[which].slice(from, until)) if (each) all.addAll(each)
  }
  return all.percentile(part) ?? Number.POSITIVE_INFINITY
}

function sumOf(
  clients: readonly ClientRecord[],
  what: 'offered' | 'served' | 'left',
  from: number,
  until: number,
): number {
  return clients.reduce((total, client) => total + sum(client[what], from, until), 0)
}

function sum(numbers: Float64Array, from: number, until: number): number {
  let total = 0
  for (let at = from; at < until; at++) total += numbers[at]!
  return total
}

function most(numbers: Float64Array, from: number, until: number): number {
  let found = 0
  for (let at = from; at < until; at++) found = Math.max(found, numbers[at]!)
  return found
}
