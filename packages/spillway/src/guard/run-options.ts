/** The options of one call. */
import type { CallerSignal } from '../core/abort.js'
import type { SpillwayError } from '../core/errors.js'
import type { Priority } from '../core/options/priority.js'
import { type Duration, parseDuration } from '../core/time/duration.js'
import type { UserLevel } from '../shared/user-limits/levels.js'

/** The level of user limits that has the least left. */
export interface UserStanding {
  readonly level: UserLevel['per']
  readonly limit: number
  readonly windowMs: number
  readonly remaining: number
  /** Milliseconds until that level is unused again. */
  readonly resetMs: number
  /** How the level counts. */
  readonly algorithm: 'token-bucket' | 'sliding-window'
}

/** Options of one call: `guard.run(fn, options)`. */
export interface RunOptions {
  /** The user, for user limits and load shedding. Default: none. */
  user?: string | undefined
  /** The tier of the user, for user limits and load shedding. Default: none. */
  tier?: string | undefined
  /** The address of the client, for user limits of level `ip`. Default: none. */
  ip?: string | undefined
  /** The endpoint, for user limits of level `endpoint`. Default: none. */
  endpoint?: string | undefined
  /** Order in the queue, and which calls are shed first. Default: `normal`. */
  priority?: Priority | undefined
  /** The lane: a model or an API key, with its own limits and breaker. Default: one lane for all calls. */
  lane?: string | undefined
  /** Estimated cost by unit of the limits; `settle` reports the actual one. Default: `requests` 1, others 0. */
  cost?: Readonly<Record<string, number>> | undefined
  /**
   * Time for the whole call, waiting and retries included. Range: from 0 ms. Default: the deadline of the
   * request.
   */
  timeoutMs?: Duration | undefined
  /** Time that an attempt needs: none is started with less time left. Range: from 0 ms. Default: 0. */
  needsMs?: number | undefined
  /** Aborts the call. A `LeaveSignal` costs less than an AbortSignal. Default: none. */
  signal?: CallerSignal | undefined
  /** Called with the tightest user limit once this call has been charged. Default: none. */
  onUserLimit?: ((standing: UserStanding) => void) | undefined
  /**
   * Called with the usage that a streamed or fetched answer reports, by unit, when the answer is complete. Not
   * called if the answer reports none. Units: `tokens`, `inputTokens` (cached ones included), `outputTokens`, and as
   * far as the vendor reports them `cachedTokens`, `cacheWriteTokens`, `cacheWrite1hTokens`, `reasoningTokens`,
   * `audioInputTokens` and `audioOutputTokens`. Default: none.
   */
  onUsage?: ((usage: Readonly<Record<string, number>>) => void) | undefined
  /**
   * Turns the usage that an answer reports into the cost that settles the call, by unit. Default: the usage as it is
   * reported.
   */
  costOfUsage?:
    | ((usage: Readonly<Record<string, number>>) => Readonly<Record<string, number>>)
    | undefined
  /** Called with each refusal of a stage in shadow mode. Default: none. */
  onShadow?: ((would: SpillwayError) => void) | undefined
  /** False: the call is retried only with an `idempotencyKey`. Default: true. */
  idempotent?: boolean | undefined
  /**
   * Number of the caller's attempt that this call belongs to. From 2 on the call is neither retried nor hedged here,
   * because retries of several services multiply. For servers that read the header themselves. Range: integers from 1.
   * Default: from the headers of the current request, if `createHops()` or a server adapter has read them.
   */
  callerAttempt?: number | undefined
  /** A key by which the downstream recognises a repeated call. Default: none. */
  idempotencyKey?: string | undefined
  /**
   * Id of the request that this call belongs to. The dashboard shows it, and `spillway explain` finds decisions by
   * it. Range: 1 to 128 letters, digits and `_ . : -`; others are not shown. Default: none.
   */
  requestId?: string | undefined
  /** With a tracer: the span that this call belongs to. Default: the active one. */
  traceParent?: unknown
  /** The key under which the fallback `staleCache` keeps the value. Default: it is not kept. */
  cacheKey?: string | undefined
  /** The data of the job that the fallback `enqueue` adds. Default: no job is added. */
  job?: unknown
}

/** The options of a call after `elapsedMs` of its time have passed. */
export function remainingOptions(options: RunOptions, elapsedMs: number): RunOptions {
  if (options.timeoutMs === undefined) return options
  const timeoutMs = Math.max(0, (parseDuration(options.timeoutMs) ?? 0) - elapsedMs)
  return { ...options, timeoutMs }
}
