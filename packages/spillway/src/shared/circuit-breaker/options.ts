/** How a user writes a breaker down, and what a store is told of it. */
import {
  bool,
  type Check,
  type Duration,
  duration,
  func,
  integer,
  number,
  type OptionProblem,
  object,
  oneOf,
  optional,
  positive,
  together,
} from '../../core/options/checks.js'
import type { OutcomeOptions } from '../../core/outcome.js'
import type { BreakerSpec } from '../../store/breaker-spec.js'
import { breakerOutage, type OutageRule } from '../outage/rules.js'

export interface BreakerPolicy {
  /** Trips after so many failures in a row, each within `windowMs` of the last. */
  consecutiveFailures?: number
  /** Trips when so large a share of the calls in the window fails: above 0, up to 1. Default: 0.5, unless another condition is given. */
  failureRate?: number
  /** Trips when so large a share of them is slow; needs `slowMs`. */
  slowRate?: number
  /** Milliseconds from which an answer is slow. */
  slowMs?: Duration
  /** Length of the window, up to 5 minutes. Default: 30 seconds. */
  windowMs?: Duration
  /** A window of so many calls instead, 1 to 1,000. */
  windowCalls?: number
  /** Shares mean nothing below so many calls in the window. Default: 10. */
  minimumCalls?: number
  /** How long it stays open. Default: 30 seconds. */
  openMs?: Duration
  /** It stays open so many times longer each time its probes fail. Default: 1. */
  openFactor?: number
  /** The longest it may stay open. Default: ten times `openMs`. */
  maxOpenMs?: Duration
  /** Probes at once, in the whole fleet. Default: 3. */
  probes?: number
  /** Probes that have to succeed. Default: 2. */
  successes?: number
  /** A pod that dies with a probe gives its place back after this. Default: 5 seconds. */
  probeLeaseMs?: Duration
  /** A probe that takes longer gives its place back, and counts nothing. Default: 60 seconds. */
  maxProbeMs?: Duration
  /** After closing, the calls at once in each pod grow from `probes` for so long. 0: at once all. Default: `openMs`, at most 10 seconds. */
  rampMs?: Duration
  /** Trips only if it would even with the worst `quorum` - 1 pods left out. Default: 1. */
  quorum?: number
  /** One breaker for each lane, or one for all lanes together. Default: `lane`. */
  per?: 'lane' | 'vendor'
  /** Decides and reports, never refuses. Default: false. */
  shadow?: boolean
  /**
   * What to go by while the store is away: this pod's own breaker (`local`), none (`open`), or no calls
   * at all (`closed`). Default: `local`.
   */
  outage?: Exclude<OutageRule, 'share'>
  /** Your own word on how a call ended. */
  classify?: OutcomeOptions['classify']
}

const SHARE = positive({ max: 1 })
const LONGEST_WINDOW_MS = 300_000

export const policyFields = {
  consecutiveFailures: optional(integer({ min: 1 })),
  failureRate: optional(SHARE),
  slowRate: optional(SHARE),
  slowMs: optional(duration({ min: 0 })),
  windowMs: optional(duration({ min: 10, max: LONGEST_WINDOW_MS })),
  windowCalls: optional(integer({ min: 1, max: 1_000 })),
  minimumCalls: optional(integer({ min: 1 })),
  openMs: optional(duration({ min: 1 }), 30_000),
  openFactor: optional(number({ min: 1, max: 100 }), 1),
  maxOpenMs: optional(duration({ min: 1 })),
  probes: optional(integer({ min: 1, max: 1_000 }), 3),
  successes: optional(integer({ min: 1, max: 1_000 }), 2),
  probeLeaseMs: optional(duration({ min: 10 }), 5_000),
  maxProbeMs: optional(duration({ min: 10 }), 60_000),
  rampMs: optional(duration({ min: 0 })),
  quorum: optional(integer({ min: 1, max: 1_000 }), 1),
  per: optional(oneOf('lane', 'vendor'), 'lane'),
  shadow: optional(bool(), false),
  outage: breakerOutage,
  classify: optional(func<NonNullable<OutcomeOptions['classify']>>()),
}

const readFields = object(policyFields)

/** What a breaker goes by; who judges how a call ended is another matter. */
export type CheckedPolicy = Omit<ReturnType<typeof readFields>, 'classify'>

/** Reads a policy, alone or as part of more options, and sees whether its parts go together. */
export function readingPolicy<T extends CheckedPolicy>(readAll: Check<T>): Check<T> {
  return together(readAll, checkTogether)
}

function checkTogether(policy: CheckedPolicy, path: string, problems: OptionProblem[]): void {
  const { slowRate, slowMs, windowMs, windowCalls, minimumCalls, openMs, maxOpenMs } = policy
  const complain = (option: string, message: string) => {
    problems.push({ path: `${path}.${option}`, message })
  }
  if (slowRate !== undefined && slowMs === undefined) {
    complain('slowRate', 'needs slowMs: how long a call takes that is slow')
  }
  if (windowMs !== undefined && windowCalls !== undefined) {
    complain('windowCalls', 'must not come together with windowMs: a window has one length')
  }
  if ((minimumCalls ?? 1) > (windowCalls ?? Number.POSITIVE_INFINITY)) {
    complain('minimumCalls', `must not be more than windowCalls, ${windowCalls}`)
  }
  if ((maxOpenMs ?? openMs) < openMs) complain('maxOpenMs', `must be at least openMs, ${openMs} ms`)
}

const DEFAULT_MINIMUM_CALLS = 10

export function toSpec(policy: CheckedPolicy): BreakerSpec {
  const { consecutiveFailures = 0, slowRate = 0, windowMs = 30_000, windowCalls = 0 } = policy
  const { openMs, maxOpenMs = openMs * 10 } = policy
  const other = consecutiveFailures > 0 || slowRate > 0
  const usualMinimum = Math.min(DEFAULT_MINIMUM_CALLS, windowCalls || DEFAULT_MINIMUM_CALLS)
  return {
    consecutive: consecutiveFailures,
    failureRate: policy.failureRate ?? (other ? 0 : 0.5),
    slowRate,
    windowUs: windowCalls > 0 ? 0 : toUs(windowMs),
    windowCalls,
    minimumCalls: policy.minimumCalls ?? usualMinimum,
    openUs: toUs(openMs),
    openFactor: policy.openFactor,
    maxOpenUs: toUs(maxOpenMs),
    probes: policy.probes,
    successes: policy.successes,
    probeLeaseUs: toUs(policy.probeLeaseMs),
    quorum: policy.quorum,
  }
}

/** So long successes may wait for company: never long enough to make a rate look bad. */
export function flushMsOf({ windowMs = 30_000 }: CheckedPolicy): number {
  return Math.min(100, windowMs / 50)
}

export function rampMsOf({ rampMs, openMs }: CheckedPolicy): number {
  return rampMs ?? Math.min(openMs, 10_000)
}

function toUs(ms: number): number {
  return Math.ceil(ms * 1_000)
}
