/** Reads the input of a plan: the vendor's contract, the fleet, and measured durations. */
import type { Duration } from 'spillway'
import {
  arrayOf,
  duration,
  integer,
  number,
  object,
  optional,
  text,
  together,
  validate,
} from 'spillway/options'

/** Input of a plan: the vendor's contract, the fleet, and measured durations. */
export interface PlanNeeds {
  /** The vendor's contract; the first one counts requests. */
  limits: readonly {
    /** Units per window. Range: integers from 1. */
    limit: number
    /** Length of the window. Range: from 1 ms. */
    windowMs: Duration
    /** The counted unit. Default: `requests`. */
    unit?: string
  }[]
  /** Number of pods. Range: integers from 1. */
  pods: number
  /** CPU cores of one pod. Range: from 0.1. Default: 1. */
  cores?: number
  /** Memory of one pod. Range: from 1 MiB. Default: 512 MiB. */
  memoryBytes?: number
  /** Memory that one call holds: request, answer, buffers. Range: from 1. Default: 1 MiB. */
  callBytes?: number
  /** Measured average duration of a call. Range: from 1 ms. */
  latencyMs: Duration
  /** Measured 99th percentile of the durations. Range: from `latencyMs`. Default: four times `latencyMs`. */
  p99Ms?: Duration
  /** How long callers wait for an answer. Range: from 1 ms. Default: three times `p99Ms`. */
  deadlineMs?: Duration
  /** Most connections of a pod to the vendor. Range: integers from 1. Default: any number. */
  sockets?: number
}

const MIB = 1_024 ** 2

const fields = object({
  limits: arrayOf(
    object({
      limit: integer({ min: 1 }),
      windowMs: duration({ min: 1 }),
      unit: optional(text(), 'requests'),
    }),
  ),
  pods: integer({ min: 1 }),
  cores: optional(number({ min: 0.1 }), 1),
  memoryBytes: optional(number({ min: MIB }), 512 * MIB),
  callBytes: optional(number({ min: 1 }), MIB),
  latencyMs: duration({ min: 1 }),
  p99Ms: optional(duration({ min: 1 })),
  deadlineMs: optional(duration({ min: 1 })),
  sockets: optional(integer({ min: 1 })),
})

const readNeeds = together(fields, ({ limits, latencyMs, p99Ms }, path, problems) => {
  if (!limits.some(({ unit }) => unit === 'requests')) {
    problems.push({ path: `${path}.limits`, message: 'must have a limit in the unit requests' })
  }
  if (p99Ms !== undefined && p99Ms < latencyMs) {
    problems.push({ path: `${path}.p99Ms`, message: 'must not be less than latencyMs' })
  }
})

export type CheckedNeeds = ReturnType<typeof checkNeeds>

/** Validates the input of a plan and fills in its defaults. */
export function checkNeeds(needs: PlanNeeds) {
  const read = validate('plan', needs, readNeeds)
  const p99Ms = read.p99Ms ?? read.latencyMs * 4
  const { limit, windowMs } = read.limits.find(({ unit }) => unit === 'requests')!
  return {
    ...read,
    p99Ms,
    deadlineMs: read.deadlineMs ?? p99Ms * 3,
    /** Units per second that the contract allows on average. */
    contractRps: (limit * 1_000) / windowMs,
  }
}
