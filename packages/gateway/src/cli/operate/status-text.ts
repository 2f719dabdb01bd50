/** Formats the status of a fleet for a terminal. */

import type { GuardOptions } from 'spillway'
import { configuredLimits, limitLabel } from 'spillway/internal'
import type { FleetGuardReport, FleetReport } from 'spillway/operate'
import { formatDuration } from '../format-duration.js'
import { table } from '../text-table.js'

type Guards = Readonly<Record<string, GuardOptions>> | undefined

/** `nowMs`: milliseconds since the Unix epoch, for the time that is left of an open breaker or a quarantine. */
export function statusText(report: FleetReport, guards: Guards, nowMs: number): string {
  const { store, livePods, pods } = report
  const parts = [
    `store: ${STORE[store]}; pods: ${livePods}`,
    table(
      ['POD', 'LAST HEARD'],
      pods.map(({ pod, ageMs }) => [pod, `${seconds(ageMs)} ago`]),
    ),
    table(
      ['VENDOR', 'LANE', 'BREAKER', 'FOR', 'CALLS', 'FAILED', 'SLOW'],
      report.guards.flatMap((guard) => breakerRows(guard, nowMs)),
    ),
    table(
      ['VENDOR', 'LANE', 'LIMIT', 'USED', 'OF', 'LEFT', 'NEXT', 'PAUSED'],
      report.guards.flatMap((guard) => limitRows(guard, guards)),
    ),
    table(
      ['VENDOR', 'KEY', 'STATE', 'REASON', 'FOR'],
      report.guards.flatMap((guard) => keyRows(guard, nowMs)),
    ),
    report.guards.flatMap(learnedLines).join('\n'),
  ]
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`
}

const STORE: Record<FleetReport['store'], string> = {
  memory: 'the memory of one gateway',
  shared: 'shared',
  unreachable: 'does not answer',
  untrusted: 'is back, and not trusted yet',
}

function breakerRows({ name, breakers }: FleetGuardReport, nowMs: number): string[][] {
  return breakers.map(({ lane, state, openUntil, calls, failures, slow }) => {
    const time = timeLeft(openUntil, nowMs)
    return [name, laneName(lane), state, time, ...[calls, failures, slow].map(String)]
  })
}

function limitRows({ name, limits }: FleetGuardReport, guards: Guards): string[][] {
  const options = guards?.[name]
  const known = options && configuredLimits(name, options)
  return limits.map(({ lane, id, limit, configured, used, available, nextFreeMs, pausedMs }) => {
    const original = known?.get(id)
    const isOriginal = original === undefined || original === configured
    const of = isOriginal ? `${limit}` : `${limit} (not ${original})`
    const paused = pausedMs > 0 ? seconds(pausedMs) : ''
    return [
      name,
      laneName(lane),
      limitName(id),
      String(Math.ceil(used)),
      of,
      String(Math.floor(available)),
      nextFreeMs > 0 ? seconds(nextFreeMs) : 'now',
      paused,
    ]
  })
}

/** Quarantined keys. A gateway of an older release reports none. */
function keyRows({ name, keys = [] }: FleetGuardReport, nowMs: number): string[][] {
  return keys.map(({ key, state, reason, until }) => {
    return [name, laneName(key), state, reason, timeLeft(until, nowMs)]
  })
}

/** Limits that the vendor does not grant in full. */
function learnedLines({ name, limits }: FleetGuardReport): string[] {
  const learned = limits.filter(({ limit, configured }) => limit < configured)
  return learned.map(({ lane, id, limit, configured }) => {
    return `${name} ${laneName(lane)} ${id}: configured ${configured}, vendor gives ${limit}`
  })
}

/** Commands need the id, so it is kept beside a label. */
function limitName(id: string): string {
  const label = limitLabel(id)
  return label === id ? id : `${id} (${label})`
}

/** Lane names may come from callers, so they are sanitised. */
function laneName(lane: string): string {
  return lane === '' ? '(all)' : lane.replaceAll(/\p{Cc}/gu, '�')
}

/** Empty without a date. */
function timeLeft(until: string | undefined, nowMs: number): string {
  return until === undefined ? '' : seconds(Math.max(0, Date.parse(until) - nowMs))
}

function seconds(ms: number): string {
  return ms < 10_000
    ? `${(ms / 1_000).toFixed(1)}s`
    : formatDuration(Math.round(ms / 1_000) * 1_000)
}
