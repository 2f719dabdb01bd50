/**
 * The state of the whole fleet, as the store has it, for health reports and metrics. It takes a few round trips, so
 * it is not for every request.
 */

import type { BreakerSnapshot, BreakerStateName } from '../../shared/circuit-breaker/api.js'
import type { QuarantineReason } from '../../shared/key-quarantine/key-notes.js'
import type { QuarantinedKey } from '../../shared/key-quarantine/read-keys.js'
import { DEFAULT_LANE } from '../../shared/lanes/lane-names.js'
import type { Member } from '../../shared/membership.js'
import type { RateLimiterFigures } from '../../shared/rate-limiter/api.js'
import type { BreakerView } from '../../store/port.js'
import type { FleetJobQueueReport } from '../jobs/queue-snapshot.js'
import { readPodStatus } from './pod-status.js'

/** Callers may choose lane names, so a report has at most this number of lanes per guard. */
export const MOST_LANES = 100

/** State of one breaker in the fleet. */
export interface FleetBreakerReport {
  /** The lane. */
  lane: string
  /** The state now. */
  state: BreakerStateName
  /** Finished calls in the window, and those of them that failed or were slow. */
  calls: number
  /** Failures in the window. */
  failures: number
  /** Slow calls in the window. */
  slow: number
  /** Calls in flight that count in the rates. */
  inFlight: number
  /** Failures since the last success. */
  consecutiveFailures: number
  /** Time of day, by the store's clock; nothing unless it is open or isolated. */
  openUntil: string | undefined
}

/** State of one limit in the fleet. */
export interface FleetLimitReport {
  /** The lane. */
  lane: string
  /** Identifies the limit in its guard. */
  id: string
  /** Units per window, as in force. */
  limit: number
  /** Units per window as configured; more than `limit` if the vendor gives less (`learn`). */
  configured: number
  /** Units used in the window. */
  used: number
  /** Units that are available now. */
  available: number
  /** Milliseconds until one unit is free, unless another call takes it; 0: one is. */
  nextFreeMs: number
  /** Milliseconds until the pause that the vendor requested ends. */
  pausedMs: number
}

/** An API key that the fleet does not use at present. */
export interface FleetKeyReport {
  /** Its name in the configuration. */
  key: string
  /** `probing`: its reset time is over, and one request tests it. */
  state: 'quarantined' | 'probing'
  /** Why it is not used. */
  reason: QuarantineReason
  /** Time of day, by the store's clock, from which a request may test it; nothing while it is probed. */
  until: string | undefined
}

/** State of one guard in the fleet. */
export interface FleetGuardReport {
  /** Name of the guard. */
  name: string
  /** State of the breaker of each lane. */
  breakers: FleetBreakerReport[]
  /** State of the limits of each lane. */
  limits: FleetLimitReport[]
  /** API keys that are quarantined. Only a gateway has keys. */
  keys: FleetKeyReport[]
  /** Calls of all pods that took from its limits; undefined without limits. Other pods report within 5 seconds. */
  requestsLastMinute: number | undefined
}

/** `memory`: for this process alone; `shared`: it answers; `unreachable`: it does not; `untrusted`: not trusted yet. */
export type FleetStoreStatus = 'memory' | 'shared' | 'unreachable' | 'untrusted'

/** State of the whole fleet, read from the store. */
export interface FleetReport {
  /** State of the store. */
  store: FleetStoreStatus
  /** Live pods, including this one; the last known number if the store is unreachable. */
  livePods: number
  /** The pods of the fleet. */
  pods: { pod: string; ageMs: number }[]
  /** State of each guard. */
  guards: FleetGuardReport[]
  /** The job queues that this pod knows; none, if the store is unreachable. */
  jobQueues: FleetJobQueueReport[]
}

/** Sources that read the state of breakers and limits from the store. */
interface BreakerSource {
  readStates(lanes: readonly string[]): Promise<{ lane: string; view: BreakerView }[]>
}
interface LimitSource {
  figures(lane: string): Promise<RateLimiterFigures>
}

export interface FleetSources {
  name: string
  breaker: BreakerSource | undefined
  limits: LimitSource | undefined
  /** Its quarantined API keys. */
  keys(): Promise<QuarantinedKey[]>
  /** Used here, or by other pods. */
  lanes: Iterable<string>
}

export async function readGuard(sources: FleetSources): Promise<FleetGuardReport> {
  const { name, breaker, limits } = sources
  const lanes = [...new Set([DEFAULT_LANE, ...sources.lanes])].slice(0, MOST_LANES)
  const [keys, views, figures] = await Promise.all([
    sources.keys(),
    breaker?.readStates(lanes) ?? [],
    Promise.all(lanes.map(async (lane) => ({ lane, figures: await limits?.figures(lane) }))),
  ])
  const [first] = figures
  return {
    name,
    breakers: views.map(({ lane, view }) => breakerReport(lane, view)),
    limits: figures.flatMap(({ lane, figures }) =>
      (figures?.limits ?? []).map(({ id, limit, configured, used, remaining, nextFreeMs }) => ({
        lane,
        id,
        limit,
        configured,
        used,
        available: remaining,
        nextFreeMs,
        pausedMs: figures?.pausedMs ?? 0,
      })),
    ),
    keys: keys.map(keyReport),
    requestsLastMinute: first?.figures?.requestsLastMinute,
  }
}

function keyReport({ key, reason, view }: QuarantinedKey): FleetKeyReport {
  const untilUs = Math.max(view.isolatedUntilUs, view.untilUs)
  const isProbing = untilUs === 0
  const until = isProbing ? undefined : isoTime(untilUs / 1_000)
  return { key, state: isProbing ? 'probing' : 'quarantined', reason, until }
}

function breakerReport(lane: string, view: BreakerView): FleetBreakerReport {
  const { nowUs, isolatedUntilUs, kind, untilUs, calls, failures, slow, inFlight, consecutive } =
    view
  const isolated = isolatedUntilUs > nowUs
  const state = isolated ? 'isolated' : STATES[kind]
  const openUs = isolated ? isolatedUntilUs : kind === 1 ? untilUs : undefined
  return {
    lane,
    state,
    calls,
    failures,
    slow,
    inFlight,
    consecutiveFailures: consecutive,
    openUntil: openUs === undefined ? undefined : isoTime(openUs / 1_000),
  }
}

const STATES = ['closed', 'open', 'half-open'] as const satisfies BreakerStateName[]

/** The state of a guard as this pod knows it, for a report while the store is unreachable. */
export function localReportOf(
  { name, breakers }: { name: string; breakers: readonly BreakerSnapshot[] },
  wallMs: number,
): FleetGuardReport {
  return {
    name,
    breakers: breakers.map((each) => {
      const { lane, state, calls, failures, slow, inFlight, consecutiveFailures, untilMs } = each
      const openUntil = untilMs === undefined ? undefined : isoTime(wallMs + untilMs)
      return { lane, state, calls, failures, slow, inFlight, consecutiveFailures, openUntil }
    }),
    limits: [],
    keys: [],
    requestsLastMinute: undefined,
  }
}

function isoTime(wallMs: number): string {
  return new Date(wallMs).toISOString()
}

/** Lanes of a guard that pods have used for calls or jobs, according to their reports. */
export function lanesOf(members: readonly Pick<Member, 'snapshot'>[], guard: string): Set<string> {
  const lanes = new Set<string>()
  for (const { snapshot } of members) {
    const status = readPodStatus(snapshot)?.guards.find(({ name }) => name === guard)
    for (const lane of status?.lanes ?? []) lanes.add(lane)
  }
  return lanes
}
