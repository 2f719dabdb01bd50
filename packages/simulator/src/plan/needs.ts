/** What a planner has to know: the vendor's contract, the fleet, and what was measured. */
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

export interface PlanNeeds {
  /** The vendor's contract; the first one counts requests. */
  limits: readonly { limit: number; windowMs: Duration; unit?: string }[]
  pods: number
  /** Of one pod. Default: 1. */
  cores?: number
  /** Of one pod, in bytes. Default: 512 MiB. */
  memoryBytes?: number
  /** What one call holds in memory: request, answer, buffers. Default: 1 MiB. */
  callBytes?: number
  /** Measured: how long a call takes on average. */
  latencyMs: Duration
  /** Measured: 99 of 100 calls are done within this. Default: four times `latencyMs`. */
  p99Ms?: Duration
  /** How long callers wait for an answer. Default: three times `p99Ms`. */
  deadlineMs?: Duration
  /** Connections a pod may have to the vendor. Default: any number. */
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
    problems.push({ path: `${path}.limits`, message: 'must have one of requests' })
  }
  if (p99Ms !== undefined && p99Ms < latencyMs) {
    problems.push({ path: `${path}.p99Ms`, message: 'must not be less than latencyMs' })
  }
})

export type CheckedNeeds = ReturnType<typeof checkNeeds>

export function checkNeeds(needs: PlanNeeds) {
  const read = validate('plan', needs, readNeeds)
  const p99Ms = read.p99Ms ?? read.latencyMs * 4
  const { limit, windowMs } = read.limits.find(({ unit }) => unit === 'requests')!
  return {
    ...read,
    p99Ms,
    deadlineMs: read.deadlineMs ?? p99Ms * 3,
    /** What the contract allows in a second, on average. */
    contractRps: (limit * 1_000) / windowMs,
  }
}
