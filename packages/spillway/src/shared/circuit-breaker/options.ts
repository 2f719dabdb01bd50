/** The options of a breaker, their validation, and the spec that pods send to the store. */
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

/** When a breaker opens and how it closes. */
export interface BreakerPolicy {
  /**
   * Opens after this number of failures in a row, each within `windowMs` of the last. Range: integers from 1.
   * Default: not checked.
   */
  consecutiveFailures?: number
  /**
   * Opens when this share of the calls in the window fails. Range: above 0, up to 1. Default: 0.5, or not
   * checked if `consecutiveFailures` or `slowRate` is given.
   */
  failureRate?: number
  /**
   * Opens when this share of the calls in the window is slow. Needs `slowMs`. Range: above 0, up to 1. Default:
   * not checked.
   */
  slowRate?: number
  /** Duration from which an answer counts as slow. Range: from 0 ms. Default: no answer is slow. */
  slowMs?: Duration
  /** The rates are those of calls that ended within this time. Range: 10 ms to 5 minutes. Default: 30 seconds. */
  windowMs?: Duration
  /**
   * A window of this number of calls, instead of `windowMs`. Range: integers from 1 to 1,000. Default: a window
   * of time.
   */
  windowCalls?: number
  /**
   * Finished calls in the window that are needed before the rates count. Range: integers from 1. Default: 10,
   * or `windowCalls` if that is less.
   */
  minimumCalls?: number
  /** How long it stays open before probes are sent. Range: from 1 ms. Default: 30 seconds. */
  openMs?: Duration
  /** Factor by which the open time grows each time the probes fail. Range: 1 to 100. Default: 1. */
  openFactor?: number
  /** The longest open time that `openFactor` can lead to. Range: from `openMs`. Default: ten times `openMs`. */
  maxOpenMs?: Duration
  /** Probes at once, in the whole fleet. Range: integers from 1 to 1,000. Default: 3. */
  probes?: number
  /** Probes that have to succeed before it closes. Range: integers from 1 to 1,000. Default: 2. */
  successes?: number
  /** The probe of a pod that died is free again after this. Range: from 10 ms. Default: 5 seconds. */
  probeLeaseMs?: Duration
  /**
   * A probe that takes longer returns its permit and is not counted. Range: from 10 ms. Default: 60 seconds.
   */
  maxProbeMs?: Duration
  /**
   * Time after closing in which each pod runs only some calls at once, more of them step by step. Range: from 0 ms; 0:
   * never limited. Default: `openMs`, at most 10 seconds.
   */
  rampMs?: Duration
  /**
   * Opens only if its conditions also hold without the `quorum` - 1 pods with the most failures. Range:
   * integers from 1 to 1,000. Default: 1.
   */
  quorum?: number
  /** One breaker for each lane, or one for all lanes together. Default: `lane`. */
  per?: 'lane' | 'vendor'
  /** Decides and reports, but never refuses. Default: false. */
  shadow?: boolean
  /**
   * While the store is unreachable: use a breaker of this pod (`local`), allow all calls (`allow`), or refuse
   * all calls (`refuse`). Default: `local`.
   */
  outage?: Exclude<OutageRule, 'share'>
  /**
   * Decides the outcome of a call in place of the built-in rules; undefined keeps them. Default: by status and
   * error.
   */
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

/** The validated policy. Outcomes are judged elsewhere. */
export type CheckedPolicy = Omit<ReturnType<typeof readFields>, 'classify'>

/** Validates a policy, alone or as part of more options, and whether its options fit together. */
export function readingPolicy<T extends CheckedPolicy>(readAll: Check<T>): Check<T> {
  return together(readAll, checkTogether)
}

function checkTogether(policy: CheckedPolicy, path: string, problems: OptionProblem[]): void {
  const { slowRate, slowMs, windowMs, windowCalls, minimumCalls, openMs, maxOpenMs } = policy
  const complain = (option: string, message: string) => {
    problems.push({ path: `${path}.${option}`, message })
  }
  if (slowRate !== undefined && slowMs === undefined) {
    complain('slowRate', 'needs slowMs, the duration from which a call is slow')
  }
  if (windowMs !== undefined && windowCalls !== undefined) {
    complain('windowCalls', 'must not come together with windowMs; remove one of them')
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

/** How long successes may wait to be reported together. */
export function flushMsOf({ windowMs = 30_000 }: CheckedPolicy): number {
  return Math.min(100, windowMs / 50)
}

export function rampMsOf({ rampMs, openMs }: CheckedPolicy): number {
  return rampMs ?? Math.min(openMs, 10_000)
}

function toUs(ms: number): number {
  return Math.ceil(ms * 1_000)
}
