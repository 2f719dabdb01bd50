/** The refusals of the built-in stages, each with the numbers behind it. */
import { counted, type Details, inMs, SpillwayError, storeUnavailable } from '../../core/errors.js'
import { PROBE_WAIT_MS } from '../../shared/circuit-breaker/lane/refusal.js'
import type { LeaveReason } from '../../shared/permit-queue/queued-call.js'
import type { UnitLimit } from '../../shared/rate-limiter/options.js'

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
  /** Decided by this pod's share, because the store is unreachable. */
  readonly byOutageRule: boolean
  readonly limits: readonly UnitLimit[]
  /** Per limit: cost of the call and remaining units; undefined if unknown. */
  readonly costs: readonly number[]
  readonly left: readonly number[] | undefined
}

export function limitedError(call: LimitedCall): SpillwayError {
  const { name, lane, retryAfterMs, paused, byOutageRule } = call
  const isShare = byOutageRule && !paused
  const short = paused || byOutageRule ? undefined : shortestLimit(call)
  return new SpillwayError({
    code: 'VENDOR_LIMITED',
    stage: 'vendor-limit',
    scope: isShare ? 'local' : 'shared',
    retryAfterMs,
    details:
      short === undefined
        ? { name, lane, paused, byOutageRule, waitMs: retryAfterMs }
        : {
            name,
            lane,
            paused,
            byOutageRule,
            waitMs: retryAfterMs,
            unit: (call.limits[short] as UnitLimit).unit,
            limit: (call.limits[short] as UnitLimit).spec.limit,
            requested: call.costs[short] ?? 0,
            left: call.left?.[short] ?? 0,
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
      `${name}: not started within ${inMs(waitedMs)} in the queue (queue.timeoutMs)`,
  },
  deadline: {
    code: 'DEADLINE_EXCEEDED',
    explain: ({ name, waitedMs }: Details) =>
      `${name}: the deadline passed after ${inMs(waitedMs)} in the queue`,
  },
  displaced: {
    code: 'QUEUE_FULL',
    explain: ({ name }: Details) =>
      `${name}: evicted from the full queue by a call of higher priority`,
  },
  overload: {
    code: 'SHED',
    explain: ({ name, waitedMs, targetMs }: Details) =>
      `${name}: dropped after ${inMs(waitedMs)} in the queue, because the delay stays above queue.targetMs (${inMs(targetMs)})`,
  },
} as const satisfies Record<LeaveReason, { code: string; explain: (details: Details) => string }>

const explainHalfOpen = ({ name, lane }: Details) =>
  `${name}: the circuit of lane ${lane} is half-open, and only probes are sent`
const explainHook = ({ name }: Details) => `${name}: shed.when returned true`
const explainFull = ({ name, waiting, size }: Details) =>
  `${name}: queue length ${waiting} reached queue.size (${size})`
const explainBusy = ({ name, active, limit }: Details) =>
  `${name}: ${active} of ${counted(limit, 'slots')} in use, and there is no queue`
const explainPace = ({ name, waitMs }: Details) =>
  `${name}: pace allows the next call in ${inMs(waitMs)}, and there is no queue`
const explainLimited = ({ name, lane, waitMs }: Details) =>
  `${name}: the limits of lane ${lane} are used up; retry in ${inMs(waitMs)}`
const explainShort = ({ name, lane, unit, limit, requested, left, waitMs }: Details) =>
  `${name}: the limit on ${unit} of lane ${lane} has ${left} of ${limit} left, and the call needs ${requested}; retry in ${inMs(waitMs)}`
const explainShare = ({ name, lane, waitMs }: Details) =>
  `${name}: the store is unreachable, and this pod's share of the limits of lane ${lane} is used up; retry in ${inMs(waitMs)}`
const explainPaused = ({ name, lane, waitMs }: Details) =>
  `${name}: the vendor asked for a pause of lane ${lane}; retry in ${inMs(waitMs)}`
