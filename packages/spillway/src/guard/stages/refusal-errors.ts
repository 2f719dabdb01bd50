/** The refusals of the built-in stages, each with the numbers behind it. */
import { type Details, inMs, SpillwayError, storeUnavailable } from '../../core/errors.js'
import type { LeaveReason } from '../../shared/permit-queue/queued-call.js'
import type { UnitLimit } from '../../shared/rate-limiter/options.js'

export function shedByQueueError(name: string, waiting: number, maxQueue: number): SpillwayError {
  return new SpillwayError({
    code: 'SHED',
    stage: 'shed',
    scope: 'local',
    details: { name, waiting, maxQueue },
    explain: explainShed,
  })
}

export function shedByHookError(name: string, waiting: number): SpillwayError {
  return new SpillwayError({
    code: 'SHED',
    stage: 'shed',
    scope: 'local',
    details: { name, waiting },
    explain: explainHook,
  })
}

export function fullError(name: string, waiting: number, size: number): SpillwayError {
  return new SpillwayError({
    code: 'QUEUE_FULL',
    stage: 'queue',
    scope: 'local',
    details: { name, waiting, size },
    explain: explainFull,
  })
}

/** No slot is free, and the guard has no queue. */
export function concurrencyError(name: string, active: number, limit: number): SpillwayError {
  return new SpillwayError({
    code: 'QUEUE_FULL',
    stage: 'concurrency',
    scope: 'local',
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

/** A call had to leave the queue. */
export function leaveError(
  name: string,
  why: LeaveReason,
  waitedMs: number,
  waiting: number,
  { active, limit }: { readonly active: number; readonly limit: number },
): SpillwayError {
  const { code, explain } = LEAVING[why]
  return new SpillwayError({
    code,
    stage: 'queue',
    scope: 'local',
    details: { name, why, waitedMs, waiting, active, limit },
    explain,
  })
}

/** The limit that a call did not fit into. */
export interface Shortage {
  readonly unit: string
  readonly limit: number
  readonly requested: number
  readonly left: number
}

/** Of the limits that were too small for a call, the one with the least left. */
export function shortageOf(
  limits: readonly UnitLimit[],
  costs: readonly number[],
  left: readonly number[] | undefined,
): Shortage | undefined {
  let shortage: Shortage | undefined
  for (let index = 0; index < limits.length; index++) {
    const { unit, spec } = limits[index] as UnitLimit
    const requested = costs[index] ?? 0
    const units = left?.[index]
    if (units === undefined || requested <= units) continue
    if (shortage !== undefined && shortage.left / shortage.limit <= units / spec.limit) continue
    shortage = { unit, limit: spec.limit, requested, left: units }
  }
  return shortage
}

export function limitedError({
  name,
  lane,
  retryAfterMs,
  paused,
  alone,
  shortage,
}: {
  name: string
  lane: string
  retryAfterMs: number
  paused: boolean
  alone: boolean
  /** Undefined if the numbers are not known. */
  shortage: Shortage | undefined
}): SpillwayError {
  const isShare = alone && !paused
  const isShort = shortage !== undefined && !paused && !alone
  return new SpillwayError({
    code: 'VENDOR_LIMITED',
    stage: 'vendor-limit',
    scope: isShare ? 'local' : 'shared',
    retryAfterMs,
    details: isShort
      ? {
          name,
          lane,
          paused,
          alone,
          waitMs: retryAfterMs,
          unit: shortage.unit,
          limit: shortage.limit,
          requested: shortage.requested,
          left: shortage.left,
        }
      : { name, lane, paused, alone, waitMs: retryAfterMs },
    explain: paused
      ? explainPaused
      : isShare
        ? explainShare
        : isShort
          ? explainShort
          : explainLimited,
  })
}

/** For calls that waited while the circuit opened, and were not informed before its open time had passed. */
export function halfOpenError(name: string, lane: string): SpillwayError {
  return new SpillwayError({
    code: 'CIRCUIT_OPEN',
    stage: 'breaker',
    scope: 'shared',
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
    explain: ({ name, waitedMs }: Details) => `${name}: nothing came free within ${inMs(waitedMs)}`,
  },
  deadline: {
    code: 'DEADLINE_EXCEEDED',
    explain: ({ name, waitedMs }: Details) =>
      `${name}: the deadline passed after ${inMs(waitedMs)} in the queue`,
  },
  displaced: {
    code: 'QUEUE_FULL',
    explain: ({ name }: Details) =>
      `${name}: the queue is full, and a call of higher priority came`,
  },
  overload: {
    code: 'SHED',
    explain: ({ name, waitedMs }: Details) =>
      `${name}: let go after ${inMs(waitedMs)}, because the queue does not get shorter`,
  },
} as const satisfies Record<LeaveReason, { code: string; explain: (details: Details) => string }>

const explainHalfOpen = ({ name, lane }: Details) =>
  `${name}: the circuit of lane ${lane} has opened, and is being probed`
const explainShed = ({ name, waiting, maxQueue }: Details) =>
  `${name}: ${waiting} calls wait already, and ${maxQueue} are enough`
const explainHook = ({ name }: Details) => `${name}: shed, as the guard's own rule says`
const explainFull = ({ name, waiting, size }: Details) =>
  `${name}: ${waiting} of ${size} places in the queue are taken`
const explainBusy = ({ name, active, limit }: Details) =>
  `${name}: ${active} of ${limit} slots are in use, and there is no queue`
const explainPace = ({ name, waitMs }: Details) =>
  `${name}: the next beat of this pod's pace comes in ${inMs(waitMs)}, and there is no queue`
const explainLimited = ({ name, lane, waitMs }: Details) =>
  `${name}: the limits of lane ${lane} have nothing left for ${inMs(waitMs)}`
const explainShort = ({ name, lane, unit, limit, requested, left, waitMs }: Details) =>
  `${name}: lane ${lane} requests ${requested} ${unit}, and ${left} of ${limit} are left; retry in ${inMs(waitMs)}`
const explainShare = ({ name, lane, waitMs }: Details) =>
  `${name}: the store is away, and this pod's share of the limits of lane ${lane} is used up for ${inMs(waitMs)}`
const explainPaused = ({ name, lane, waitMs }: Details) =>
  `${name}: the vendor wants lane ${lane} to pause for ${inMs(waitMs)}`
