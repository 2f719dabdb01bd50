/** The refusals of the built-in stages, each with the numbers behind it. */
import {
  counted,
  type Details,
  readableTime,
  SpillwayError,
  storeUnavailable,
} from '../../core/errors.js'
import { PROBE_WAIT_MS } from '../../shared/circuit-breaker/lane/refusal.js'
import type { LeaveReason } from '../../shared/permit-queue/queued-call.js'
import type { UnitLimit } from '../../shared/rate-limiter/options.js'
import type { Cost } from '../../shared/rate-limiter/permit.js'
import { ReservedCost } from '../llm/reserved-cost.js'

/** `shed.when` returned true. */
export function shedByHookError(
  name: string,
  waiting: number,
  retryAfterMs: number,
): SpillwayError {
  return new SpillwayError({
    code: 'SHED',
    stage: 'shed',
    scope: 'local',
    retryAfterMs,
    details: { name, reason: 'when', option: 'shed.when', waiting },
    explain: explainHook,
  })
}

export function fullError(
  name: string,
  waiting: number,
  size: number,
  retryAfterMs: number,
): SpillwayError {
  return new SpillwayError({
    code: 'QUEUE_FULL',
    stage: 'queue',
    scope: 'local',
    retryAfterMs,
    details: { name, waiting, size },
    explain: explainFull,
  })
}

/** No slot is free, and the guard has no queue. */
export function concurrencyError(
  name: string,
  active: number,
  limit: number,
  retryAfterMs: number,
): SpillwayError {
  return new SpillwayError({
    code: 'QUEUE_FULL',
    stage: 'concurrency',
    scope: 'local',
    retryAfterMs,
    details: { name, active, limit },
    explain: explainBusy,
  })
}

/** The pace allows no start now, and the guard has no queue. */
export function paceError(name: string, active: number, waitMs: number): SpillwayError {
  return new SpillwayError({
    code: 'QUEUE_FULL',
    stage: 'pace',
    scope: 'local',
    retryAfterMs: waitMs,
    details: { name, active, waitMs },
    explain: explainPace,
  })
}

/** The state of the queue when a call left it. */
export interface LeftQueue {
  readonly waitedMs: number
  readonly waiting: number
  readonly active: number
  readonly limit: number
  /** From `queue.targetMs`. */
  readonly targetMs: number
  /** Undefined if waiting does not help. */
  readonly retryAfterMs: number | undefined
}

/** A call had to leave the queue. */
export function leaveError(name: string, why: LeaveReason, queue: LeftQueue): SpillwayError {
  const { code, explain } = LEAVING[why]
  const { waitedMs, waiting, active, limit, targetMs, retryAfterMs } = queue
  return new SpillwayError({
    code,
    stage: 'queue',
    scope: 'local',
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    details: {
      name,
      why,
      waitedMs,
      waiting,
      active,
      limit,
      ...(why === 'overload' && { targetMs }),
    },
    explain,
  })
}

/** A call that the vendor's limits refuse. */
export interface LimitedCall {
  readonly name: string
  readonly lane: string
  readonly retryAfterMs: number
  /** The vendor asked for a pause. */
  readonly paused: boolean
  /** Why this pod decided without the store, by an outage rule. Undefined: the store decided. */
  readonly outageReason: string | undefined
  /** How long calls may wait in the queue; 0 without a queue, undefined in shadow mode. */
  readonly queueTimeoutMs: number | undefined
  readonly limits: readonly UnitLimit[]
  /** The lane's pool, if it has one. */
  readonly pool: string | undefined
  /** The cost as the caller gave it. */
  readonly cost: Cost | undefined
  /** Per limit: cost of the call and remaining units; undefined if unknown. */
  readonly costs: readonly number[]
  readonly left: readonly number[] | undefined
}

export function limitedError(call: LimitedCall): SpillwayError {
  const { name, lane, retryAfterMs, paused, outageReason, queueTimeoutMs } = call
  const byOutageRule = outageReason !== undefined
  const isShare = byOutageRule && !paused
  const short = paused ? undefined : shortestLimit(call)
  // The option that made the wait too short, if a longer wait would have helped.
  const queueOption =
    queueTimeoutMs === undefined || retryAfterMs <= queueTimeoutMs
      ? undefined
      : queueTimeoutMs === 0
        ? 'queue'
        : 'queue.timeoutMs'
  return new SpillwayError({
    code: 'VENDOR_LIMITED',
    stage: 'vendor-limit',
    scope: isShare ? 'local' : 'shared',
    retryAfterMs,
    details: {
      name,
      lane,
      paused,
      byOutageRule,
      waitMs: retryAfterMs,
      ...(byOutageRule && { why: outageReason }),
      ...(queueOption !== undefined && { queueOption }),
      ...(short !== undefined && detailsOfLimit(call, short, isShare)),
    },
    explain: paused
      ? explainPaused
      : isShare
        ? explainShare
        : short === undefined
          ? explainLimited
          : explainShort,
  })
}

/** The limit that was too small for the call. During an outage the remainder of the whole limit is not known. */
function detailsOfLimit(call: LimitedCall, index: number, isShare: boolean): Details {
  const { limits, costs, left, pool, cost } = call
  const { unit, spec } = limits[index] as UnitLimit
  return {
    unit,
    limit: spec.limit,
    requested: costs[index] ?? 0,
    ...(!isShare && { left: left?.[index] ?? 0 }),
    span: spec.span,
    ...(spec.span === 'pool' && pool !== undefined && { pool }),
    // Each call is one request. Other costs are known when the answer is there.
    ...(unit !== 'requests' && { estimated: ReservedCost.explain(cost, unit) ?? true }),
  }
}

/** Index of the limit with the smallest remainder, among those that were too small for the call. */
function shortestLimit({ limits, costs, left }: LimitedCall): number | undefined {
  let shortest: number | undefined
  let leastLeft = Number.POSITIVE_INFINITY
  for (let index = 0; left !== undefined && index < limits.length; index++) {
    const units = left[index]
    if (units === undefined || (costs[index] ?? 0) <= units) continue
    const part = units / (limits[index] as UnitLimit).spec.limit
    if (part >= leastLeft) continue
    leastLeft = part
    shortest = index
  }
  return shortest
}

/** For calls that were still in the queue when the circuit became half-open. */
export function halfOpenError(name: string, lane: string): SpillwayError {
  return new SpillwayError({
    code: 'CIRCUIT_OPEN',
    stage: 'breaker',
    scope: 'shared',
    retryAfterMs: PROBE_WAIT_MS,
    details: { name, lane, state: 'half-open' },
    explain: explainHalfOpen,
  })
}

export function storeError(
  name: string,
  cause: unknown,
  stage: 'user-limit' | 'vendor-limit' = 'vendor-limit',
): SpillwayError {
  return storeUnavailable(stage, name, cause)
}

const LEAVING = {
  timeout: {
    code: 'QUEUE_TIMEOUT',
    explain: ({ name, waitedMs }: Details) =>
      `${name}: not started within ${readableTime(waitedMs)} in the queue (queue.timeoutMs)`,
  },
  deadline: {
    code: 'DEADLINE_EXCEEDED',
    explain: ({ name, waitedMs }: Details) =>
      `${name}: the deadline passed after ${readableTime(waitedMs)} in the queue`,
  },
  displaced: {
    code: 'QUEUE_FULL',
    explain: ({ name }: Details) =>
      `${name}: evicted from the full queue by a call of higher priority`,
  },
  overload: {
    code: 'SHED',
    explain: ({ name, waitedMs, targetMs }: Details) =>
      `${name}: dropped after ${readableTime(waitedMs)} in the queue, because the delay stays above queue.targetMs (${readableTime(targetMs)})`,
  },
} as const satisfies Record<LeaveReason, { code: string; explain: (details: Details) => string }>

const explainHalfOpen = ({ name, lane }: Details) =>
  `${name}: the circuit of lane ${lane} is half-open, and only probes are sent`
const explainHook = ({ name }: Details) => `${name}: shed.when returned true`
const explainFull = ({ name, waiting, size }: Details) =>
  `${name}: queue length ${waiting} reached queue.size (${size}); raise it or add pods`
const explainBusy = ({ name, active, limit }: Details) =>
  `${name}: ${active} of ${counted(limit, 'slots')} in use (concurrency.limit), and there is no queue`
const explainPace = ({ name, waitMs }: Details) =>
  `${name}: pace allows the next call in ${readableTime(waitMs)}, and there is no queue`
const explainLimited = (details: Details) =>
  `${details.name}: the limits ${whereOf(details)} are used up (limits); ${remedyOf(details)}`
const explainShort = (details: Details) => {
  const { name, limit, left } = details
  const remainder = `${left} of ${limit} ${left === 1 ? 'is' : 'are'} left`
  return `${name}: the call needs ${costOf(details)}, and ${remainder} ${whereOf(details)} (limits); ${remedyOf(details)}`
}
const explainShare = (details: Details) => {
  const { name, unit, why } = details
  const limit = unit === undefined ? 'the limits' : `the limit on ${unit}`
  return `${name}: this pod's share of ${limit} ${whereOf(details)} is used up (limits[].outage), because ${why}; ${remedyOf(details)}`
}
const explainPaused = ({ name, lane, waitMs }: Details) =>
  `${name}: the vendor asked for a pause of lane ${lane}; retry in ${readableTime(waitMs)}`

/** The lanes that the limit counts together. */
function whereOf({ span, pool, lane }: Details): string {
  if (span === 'vendor') return 'for all lanes together'
  return span === 'pool' ? `in pool ${pool}` : `in lane ${lane}`
}

function costOf({ requested, unit, estimated }: Details): string {
  const cost = counted(requested, String(unit))
  if (estimated === undefined) return cost
  return `${cost} (${estimated === true ? 'estimated' : `estimated: ${estimated}`})`
}

function remedyOf({ waitMs, queueOption }: Details): string {
  const retry = `retry in ${readableTime(waitMs)}`
  if (queueOption === undefined) return retry
  return queueOption === 'queue'
    ? `${retry}, or set queue so that calls wait`
    : `${retry}, or raise queue.timeoutMs so that calls wait longer`
}
