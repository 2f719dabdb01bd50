/** Options of a job queue, and their encoding for the store. */
import {
  bool,
  type Check,
  type Duration,
  duration,
  either,
  integer,
  number,
  object,
  optional,
  text,
} from '../../core/options/checks.js'
import { readPriority } from '../../core/options/priority.js'

/** Settings of a job queue, the same for all pods. */
export interface JobQueueSettings {
  /** The lane of the guard that jobs use. Default: the lane of calls that name none. */
  lane?: string
  /** Most jobs that are waiting, delayed or running. Range: integers from 1. Default: 100,000. */
  maxSize?: number
  /**
   * Most jobs of one tenant that are waiting, delayed or running. Jobs without a tenant share `maxSize` only.
   * Range: integers from 1. Default: a tenth of `maxSize`, at least 1.
   */
  maxPerTenant?: number | undefined
  /** Attempts of a job, including the first. Range: integers from 1. Default: 3. */
  attempts?: number
  /**
   * Turns of a job that may end without counting as an attempt: with a 429, a refusal inside the handler, or a
   * failure of a downstream that is known to be broken. Later turns all count. Range: integers from 0. Default:
   * 10.
   */
  uncountedTurns?: number
  /**
   * A worker that is silent for this long loses its jobs to others. Range: from 100 ms. Default: 30 seconds.
   */
  leaseMs?: Duration
  /** How long results are kept; 0: a job that is done is deleted. Range: from 0 ms. Default: 1 hour. */
  resultMs?: Duration
  /** How long dead letters are kept. Range: from 1 ms. Default: 7 days. */
  deadMs?: Duration
  /**
   * A job queue that is not used for this long is deleted with its jobs. Range: from 1 second. Default: 30
   * days.
   */
  forgetMs?: Duration
  /** After this time a job counts as one priority higher. Range: from 1 ms. Default: 5 minutes. */
  agingMs?: Duration
  /**
   * Fraction of every limit that is reserved for calls. Unless it is 0, jobs are also spread evenly over the
   * window. Range: 0 to 0.9. Default: 0.05.
   */
  keep?: number
  /**
   * Number of replicas that must have the job before adding resolves; `true` is 1. Rejects if they do not
   * within `confirmMs`; the job may still have been added. Range: integers from 1. Default: false.
   */
  durable?: boolean | number
  /** How long `durable` waits for the replicas. Range: from 1 ms. Default: 1 second. */
  confirmMs?: Duration
}

export const settingFields = {
  lane: optional(text()),
  maxSize: optional(integer({ min: 1 }), 100_000),
  maxPerTenant: optional(integer({ min: 1 })),
  attempts: optional(integer({ min: 1 }), 3),
  uncountedTurns: optional(integer({ min: 0 }), 10),
  leaseMs: optional(duration({ min: 100 }), 30_000),
  resultMs: optional(duration({ min: 0 }), 3_600_000),
  deadMs: optional(duration({ min: 1 }), 7 * 86_400_000),
  forgetMs: optional(duration({ min: 1_000 }), 30 * 86_400_000),
  agingMs: optional(duration({ min: 1 }), 300_000),
  keep: optional(number({ min: 0, max: 0.9 }), 0.05),
  durable: optional(either(bool(), integer({ min: 1 })), false),
  confirmMs: optional(duration({ min: 1 }), 1_000),
}

const readSettings = object(settingFields)
export type CheckedSettings = ReturnType<typeof readSettings>

/** `maxPerTenant` is `maxSize` divided by this, by default. */
const TENANT_SHARE = 10

export function maxPerTenantOf({
  maxSize,
  maxPerTenant,
}: Pick<CheckedSettings, 'maxSize' | 'maxPerTenant'>): number {
  return maxPerTenant ?? Math.max(1, Math.floor(maxSize / TENANT_SHARE))
}

const readCost: Check<Readonly<Record<string, number>>> = (value, path, problems) => {
  const cost = object({})
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return cost(value, path, problems)
  }
  for (const [unit, units] of Object.entries(value)) {
    integer({ min: 0 })(units, `${path}.${unit}`, problems)
  }
  return value as Readonly<Record<string, number>>
}

const jobFields = {
  priority: optional(readPriority, 'normal'),
  delayMs: optional(duration({ min: 0 }), 0),
  timeoutMs: optional(duration({ min: 1 })),
  key: optional(text(), ''),
  tenant: optional(text(), ''),
  cost: optional(readCost, {}),
  attempts: optional(integer({ min: 1 })),
}

export const readJob = object(jobFields)

export const readAdd = object({
  ...jobFields,
  as: optional(
    object({
      user: optional(text()),
      tier: optional(text()),
      ip: optional(text()),
      endpoint: optional(text()),
    }),
  ),
})

/** Callers may choose tenant names, so the reply needs a limit. */
export const readCountsOptions = object({ tenants: optional(integer({ min: 0, max: 100 }), 0) })

export function toUs(ms: number): number {
  return Math.ceil(ms * 1_000)
}
