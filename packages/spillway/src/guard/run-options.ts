/** What a caller says about one call. */
import type { CallerSignal } from '../core/abort.js'
import type { SpillwayError } from '../core/errors.js'
import type { Priority } from '../core/options/priority.js'
import { type Duration, parseDuration } from '../core/time/duration.js'
import type { UserLevel } from '../shared/user-limits/levels.js'

/** Of the level that has least left. */
export interface UserStanding {
  readonly level: UserLevel['per']
  readonly limit: number
  readonly windowMs: number
  readonly remaining: number
  /** Until that level has everything again. */
  readonly resetMs: number
}

export interface RunOptions {
  /** Whose call it is, for user limits. */
  user?: string | undefined
  tier?: string | undefined
  ip?: string | undefined
  endpoint?: string | undefined
  /** Default: `normal`. */
  priority?: Priority | undefined
  /** Model, API key: what the vendor counts, and what fails, separately. Default: one for all. */
  lane?: string | undefined
  /** By unit: an estimate will do, `settle` it. `requests` is 1 unless said otherwise. */
  cost?: Readonly<Record<string, number>> | undefined
  /** Nobody wants the answer after this; retries included. */
  timeoutMs?: Duration | undefined
  /** It is not worth beginning with less time left than this. */
  needsMs?: number | undefined
  /** A `LeaveSignal` costs less than an AbortSignal. */
  signal?: CallerSignal | undefined
  /** Told how the user's limits stand once this call has been charged. */
  onUserLimit?: ((standing: UserStanding) => void) | undefined
  /** Told of what a stage in shadow would have refused this call with. */
  onShadow?: ((would: SpillwayError) => void) | undefined
  /** False: doing it twice might do harm. Then it is retried only with a key. Default: true. */
  idempotent?: boolean | undefined
  /** The downstream recognises a repetition by this key. */
  idempotencyKey?: string | undefined
  /** With a tracer: what this call is part of, in its words. Default: what is going on at the moment. */
  traceParent?: unknown
  /** What is asked for, as a stale cache among the fallbacks should know it. Default: nothing is kept. */
  cacheKey?: string | undefined
  /** What a job would need to know that does this later, for `enqueue` among the fallbacks. Default: there is none. */
  job?: unknown
}

/** The same call, after so much of its time is gone. */
export function leftOf(options: RunOptions, goneMs: number): RunOptions {
  if (options.timeoutMs === undefined) return options
  const timeoutMs = Math.max(0, (parseDuration(options.timeoutMs) ?? 0) - goneMs)
  return { ...options, timeoutMs }
}
