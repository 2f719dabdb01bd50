/** The options of a guard. A stage whose option is absent is off. */

import { type HopHeaders, type HopNames, hopNames } from '../core/hops.js'
import {
  arrayOf,
  bool,
  type Check,
  type Duration,
  duration,
  func,
  integer,
  number,
  object,
  oneOf,
  optional,
  text,
  together,
  validate,
} from '../core/options/checks.js'
import { described, describedAs } from '../core/options/schema.js'
import type { OutcomeOptions } from '../core/outcome.js'
import {
  type AdaptiveLimitOptions,
  adaptiveFields,
  checkBounds,
  readAlgorithm,
} from '../local/adaptive-limit/adaptive-limit.js'
import { type HedgeDelayOptions, hedgeDelayFields } from '../local/hedge/hedge-delay.js'
import { type ShedOptions, shedFields } from '../local/load-shedder/options.js'
import { type BackoffOptions, backoffFields } from '../local/retry/backoff.js'
import { type ThrottleOptions, throttleFields } from '../local/throttle.js'
import { readAdaptive } from '../local/timeout/adaptive-timeout.js'
import { checkAdaptive, type TimeoutOptions } from '../local/timeout/timeout.js'
import {
  type BreakerPolicy,
  policyFields,
  readingPolicy,
} from '../shared/circuit-breaker/options.js'
import { readMaxLanes } from '../shared/lanes/lane-registry.js'
import { readLimits, type SharedLimit } from '../shared/rate-limiter/options.js'
import {
  checkPools,
  type LaneEntry,
  type LimitPool,
  readLaneEntries,
  readPools,
} from '../shared/rate-limiter/settings/lane-entries.js'
import { readLevels, type UserLevel } from '../shared/user-limits/levels.js'
import type { Fetch, FetchOptions } from './fetch/fetch.js'
import { readSdk } from './fetch/sdk-errors.js'
import { positionProblem, type ShadowStage, STAGES, withCustomStages } from './pipeline/stages.js'
import { checkShadow, readShadow } from './shadow-options.js'
import { CustomStage } from './stages/custom.js'
import { type FallbackStep, type GuardLike, readFallback } from './stages/fallback.js'
import type { ShedQuestion } from './stages/shed.js'

/**
 * Options of a guard. A stage whose option is absent is off.
 *
 * @example
 * spillway.guard('payments', {
 *   timeout: { callMs: '10s' },
 *   breaker: { failureRate: 0.5, openMs: '30s' },
 *   limits: [{ unit: 'requests', limit: 100, windowMs: '1m' }],
 *   retry: { attempts: 3 },
 * })
 */
export interface GuardOptions {
  /**
   * Load shedding: refuses calls early, before anything is taken. Calls of priority `critical` are never shed.
   * Default: off.
   */
  shed?: ShedOptions & {
    /** The application's own rule: true sheds the call. Default: none. */
    when?: (question: ShedQuestion) => boolean
  }
  /** Limits for each user, address, tier or endpoint, shared by all pods. Default: none. */
  userLimits?: readonly UserLevel[]
  /** Where calls wait for slots and permits. Default: off; a call waits only for the store's reply. */
  queue?: {
    /** Most calls that wait. Range: integers from 0. */
    size: number
    /** Longest wait of a call. Range: from 0 ms. Default: 5 seconds. */
    timeoutMs?: Duration
    /**
     * If calls wait longer than this for `intervalMs`, the queue drops calls and serves the newest first. Range:
     * from 1 ms. Default: a tenth of `timeoutMs`.
     */
    targetMs?: Duration
    /**
     * CoDel's interval: how long the delay must stay above `targetMs` before calls are dropped, and the time between
     * the first two drops. Range: from 1 ms. Default: `targetMs`.
     */
    intervalMs?: Duration
    /** Wait that raises a call by one step of priority. Range: from 1 ms. Default: half of `timeoutMs`. */
    agingMs?: Duration
  }
  /** The circuit breaker, shared by all pods. Default: off. */
  breaker?: Omit<BreakerPolicy, 'classify'>
  /**
   * Refuses a share of the calls in this pod that grows with the share that the downstream rejects. Default:
   * off.
   */
  throttle?: Pick<ThrottleOptions, 'k' | 'windowMs' | 'minimumCalls'>
  /** The vendor's limits, shared by all pods: 1 to 16. Default: none. */
  limits?: readonly SharedLimit[]
  /**
   * Lanes with limits of their own, or in a pool. The first entry that matches a lane's name replaces the limits per
   * lane of `limits`; those with `per: 'vendor'` apply as well. Default: none.
   */
  lanes?: readonly LaneEntry[]
  /** Limits that the lanes of a pool share, by name of the pool. Default: none. */
  pools?: Readonly<Record<string, LimitPool>>
  /**
   * How much later than its permit a call may reach the vendor. Range: from 1 ms. Default: a twentieth of the
   * shortest window, 10 to 100 ms.
   */
  jitterMs?: Duration
  /** The longest pause after a 429, except until the reset of a spent quota. Range: from 0 ms. Default: 60 seconds. */
  maxPauseMs?: Duration
  /**
   * The first pause after a 429 without `Retry-After`; it doubles each time. Range: from 1 ms. Default: 500 ms.
   */
  basePauseMs?: Duration
  /** Spreads the calls of this pod: at most `limit` starts in `windowMs`. Default: off. */
  pace?: {
    /** Starts per window. Range: integers from 1. */
    limit: number
    /** Time in which at most `limit` calls start. Range: from 1 ms. */
    windowMs: Duration
    /** Starts that may follow each other immediately. Range: integers from 1. Default: `limit`. */
    burst?: number
  }
  /**
   * At most `limit` calls at once in this pod; with `adaptive` each lane learns its own limit. Default: off.
   */
  concurrency?: Partial<Omit<AdaptiveLimitOptions, 'name' | 'clock'>> & {
    /**
     * Slots of this pod, for all lanes. Required without `adaptive`. Range: integers from 1. Default: only the
     * adaptive limit.
     */
    limit?: number
    /** How long the work of a timed-out call may keep its slot. Range: from 0 ms. Default: 30 seconds. */
    graceMs?: Duration
  }
  /**
   * Timeouts of one attempt. Without any of `callMs`, `firstByteMs` and `idleMs` the guard emits
   * `guard.no-timeout`. Default: off.
   */
  timeout?: Pick<TimeoutOptions, 'callMs' | 'firstByteMs' | 'idleMs' | 'adaptive'> & {
    /** A streamed answer that is not read for this long is abandoned. Range: from 1 ms. Default: 60 seconds. */
    unreadMs?: Duration
  }
  /**
   * A second attempt beside a slow one, if everything it needs is free and the retry budget allows it. Default:
   * off.
   */
  hedge?: HedgeDelayOptions & {
    /** The lane of the second attempt. Default: that of the first. */
    lane?: string
  }
  /** Further attempts after a failure. Default: off. */
  retry?: BackoffOptions & {
    /** Most attempts of a call, the first one included. Range: integers from 1. Default: 3. */
    attempts?: number
    /** Most retries, as a fraction of the calls. Range: 0 to 1. Default: 0.2. */
    budget?: number
    /** A longer `Retry-After` than this ends the call. Range: from 0 ms. Default: 60 seconds. */
    maxRetryAfterMs?: Duration
    /**
     * No retry while the oldest call in the queue has waited longer than this, whatever it waits for: a slot, the
     * pace, a vendor limit. Raise it for batch work, which queues on purpose. Range: from 0 ms. Default: 2 seconds.
     */
    maxQueueWaitMs?: Duration
    /** `edge`: calls on behalf of a request from another service are not retried here. Default: `anywhere`. */
    where?: 'anywhere' | 'edge'
  }
  /** Answers in place of a failed call: the first fallback that has one is used. Default: none. */
  fallback?: readonly (GuardLike | FallbackStep)[]
  /** Options of `guard.fetch`. Default: those of each field. */
  fetch?: {
    /** The function that sends requests. Default: Node's `fetch`. */
    fetch?: Fetch
    /**
     * Longest time until a request is on a connection. Needs Node's own fetch, or undici's. Range: from 1 ms.
     * Default: no limit.
     */
    connectMs?: Duration
    /** Sends the remaining time and the attempt number as headers. Default: false. */
    hops?: boolean | HopHeaders
    /** A header in which requests without a key get one, so that they may be repeated. Default: none. */
    idempotencyHeader?: string
    /** Returns the lane, cost and user of a request. Default: none. */
    describe?: FetchOptions['describe']
    /** Turns refusals into responses instead of errors. Default: false. */
    respond?: boolean
    /** The SDK that uses this fetch: a stream that Spillway ends gets an error of that SDK. Default: none. */
    sdk?: FetchOptions['sdk']
  }
  /**
   * Lanes that this pod keeps at the same time. Idle lanes are dropped to make room; lanes that are open,
   * isolated, paused or in use are not. If none can be dropped, calls of further lanes share the lane
   * `(other)`, which is not counted. Range: integers from 1. Default: 1,000.
   */
  maxLanes?: number
  /** Stages of the application, made by `customStage`. Default: none. */
  stages?: readonly CustomStage[]
  /**
   * Stages that only report the calls they would have refused, custom ones by name; `true`: all stages that
   * can. Default: none.
   */
  shadow?: true | readonly (ShadowStage | (string & {}))[]
  /** Decides the outcome of an attempt, for breaker and retry alike. Default: by status and error. */
  classify?: OutcomeOptions['classify']
}

const readHops: Check<HopNames | undefined> = (value, path, problems) => {
  if (value === true) return hopNames()
  if (value === false) return undefined
  if (typeof value === 'object' && value !== null) return hopNames(value)
  problems.push({ path, message: 'must be true, or an object with the names of headers' })
  return undefined
}

/** `classify` belongs to the guard: how a call ended is judged once, for breaker and retry alike. */
const { classify: _, ...breakerFields } = policyFields
const readGuardPolicy = readingPolicy(object(breakerFields))

const DEFAULT_QUEUE_MS = 5_000

/** Needs a limit, or the algorithm that finds one. */
const checkConcurrency: Parameters<typeof together<CheckedConcurrency>>[1] = (
  options,
  path,
  problems,
) => {
  const { limit, adaptive } = options
  if (limit === undefined && adaptive === undefined) {
    const message = 'must be a positive integer, unless adaptive is set'
    problems.push({ path: `${path}.limit`, message })
  }
  if (adaptive !== undefined) checkBounds(options, path, problems)
}

interface CheckedConcurrency {
  limit: number | undefined
  adaptive: 'aimd' | 'gradient2' | undefined
  min: number
  max: number
  initial: number | undefined
}

const readStage: Check<CustomStage> = (value, path, problems) => {
  if (value instanceof CustomStage) return value
  problems.push({ path, message: 'must be what customStage() returns' })
  return undefined as never
}

/** Each stage has a position before the call and a unique name. */
const readStages: Check<readonly CustomStage[]> = described((value, path, problems) => {
  const before = problems.length
  const stages = arrayOf(readStage)(value, path, problems)
  if (problems.length > before) return []
  const placed: CustomStage[] = []
  for (const [index, stage] of stages.entries()) {
    const rows = withCustomStages(STAGES, placed)
    const note = (message: string) => problems.push({ path: `${path}[${index}]`, message })
    if (rows.some((row) => row.stage === stage.name)) note(`the name '${stage.name}' is taken`)
    const problem = positionProblem(rows, stage.options)
    if (problem === undefined) placed.push(stage)
    else note(problem)
  }
  return placed
}, undefined)

const readFields = object({
  shed: optional(
    object({
      ...shedFields,
      when: optional(func<(question: ShedQuestion) => boolean>()),
    }),
  ),
  userLimits: optional(readLevels),
  queue: optional(
    object({
      size: integer({ min: 0 }),
      timeoutMs: optional(duration({ min: 0 }), DEFAULT_QUEUE_MS),
      targetMs: optional(duration({ min: 1 })),
      intervalMs: optional(duration({ min: 1 })),
      agingMs: optional(duration({ min: 1 })),
    }),
  ),
  breaker: optional(readGuardPolicy),
  throttle: optional(object(throttleFields)),
  limits: optional(readLimits),
  lanes: optional(readLaneEntries),
  pools: optional(readPools),
  jitterMs: optional(duration({ min: 1 })),
  maxPauseMs: optional(duration({ min: 0 }), 60_000),
  basePauseMs: optional(duration({ min: 1 }), 500),
  maxLanes: readMaxLanes,
  pace: optional(
    object({
      limit: integer({ min: 1 }),
      windowMs: duration({ min: 1 }),
      burst: optional(integer({ min: 1 })),
    }),
  ),
  concurrency: optional(
    together(
      object({
        limit: optional(integer({ min: 1 })),
        adaptive: optional(readAlgorithm),
        ...adaptiveFields,
        graceMs: optional(duration({ min: 0 }), 30_000),
      }),
      checkConcurrency,
    ),
  ),
  timeout: optional(
    together(
      object({
        callMs: optional(duration({ min: 1 })),
        firstByteMs: optional(duration({ min: 1 })),
        idleMs: optional(duration({ min: 1 })),
        adaptive: optional(readAdaptive),
        unreadMs: optional(duration({ min: 1 })),
      }),
      checkAdaptive,
    ),
  ),
  hedge: optional(object({ ...hedgeDelayFields, lane: optional(text()) })),
  retry: optional(
    object({
      ...backoffFields,
      attempts: optional(integer({ min: 1 }), 3),
      budget: optional(number({ min: 0, max: 1 }), 0.2),
      maxRetryAfterMs: optional(duration({ min: 0 }), 60_000),
      maxQueueWaitMs: optional(duration({ min: 0 }), 2_000),
      where: optional(oneOf('anywhere', 'edge'), 'anywhere'),
    }),
  ),
  fallback: optional(readFallback),
  fetch: optional(
    object({
      fetch: optional(func<Fetch>()),
      connectMs: optional(duration({ min: 1 })),
      hops: optional(readHops),
      idempotencyHeader: optional(text()),
      describe: optional(func<NonNullable<FetchOptions['describe']>>()),
      respond: optional(bool(), false),
      sdk: optional(readSdk),
    }),
  ),
  stages: optional(readStages),
  shadow: optional(readShadow),
  classify: optional(func<NonNullable<OutcomeOptions['classify']>>()),
})

const readRelated = together(readFields, (options, path, problems) => {
  checkShadow(withLimits(options), path, problems)
  checkPools(options, path, problems)
})

/** Lanes with limits need the stage, also if other lanes have none. */
function withLimits<T extends Pick<ReturnType<typeof readFields>, 'limits' | 'lanes'>>(
  options: T,
): T {
  const isMissing = options?.lanes !== undefined && options.limits === undefined
  return isMissing ? { ...options, limits: [] } : options
}

const readGuard: typeof readRelated = describedAs(
  (value, path, problems) => withLimits(readRelated(value, path, problems)),
  readRelated,
)

export type CheckedGuard = ReturnType<typeof readGuard>

export function checkGuard(name: string, options: GuardOptions): CheckedGuard {
  return validate(`guard(${name})`, options, readGuard)
}

/** For guards inside a larger configuration: notes problems under its path. The guard reads the options again. */
export const readGuardOptions: Check<GuardOptions> = describedAs((value, path, problems) => {
  readGuard(value, path, problems)
  return value as GuardOptions
}, readGuard)
