/**
 * Starts a call: reads its options and checks whether it may begin. A refusal here costs little more than its error
 * object, which matters under overload.
 */
import { checkSignal } from '../../core/abort.js'
import { refuse } from '../../core/errors.js'
import {
  duration,
  integer,
  number,
  text,
  unknownOption,
  validate,
} from '../../core/options/checks.js'
import { importanceOf, NORMAL_IMPORTANCE } from '../../core/options/priority.js'
import { currentDeadline, Deadline, earlierOf } from '../../core/time/deadline.js'
import { DEFAULT_LANE } from '../../shared/lanes/lane-names.js'
import type { RunOptions } from '../run-options.js'
import { type CallDependencies, type CallFacts, type CallWatchers, GuardCall } from './call.js'
import type { CallFunction } from './context.js'

const readTimeout = duration({ min: 0 })
const NO_COSTS: readonly number[] = []

export function startCall<T>(
  shared: CallDependencies,
  fn: CallFunction<T>,
  given: RunOptions,
  watchers: CallWatchers | undefined,
): Promise<T> {
  const { clock, counters, observers, pipeline } = shared
  const { signal, priority: givenPriority, timeoutMs, needsMs, callerAttempt } = given
  counters.calls++
  if (signal?.aborted === true) return refuse(signal.reason)
  const arrivedMs = clock.now()
  const name = given.lane ?? DEFAULT_LANE
  let priority = NORMAL_IMPORTANCE
  let deadline = currentDeadline()
  try {
    checkRunOptions(given)
    if (typeof name !== 'string' || name === '') validate('lane', name, text())
    if (signal !== undefined) checkSignal(signal)
    if (givenPriority !== undefined) priority = importanceOf(givenPriority)
    if (timeoutMs !== undefined) {
      const isPlain = typeof timeoutMs === 'number' && timeoutMs >= 0
      const ms = isPlain ? timeoutMs : validate('timeoutMs', timeoutMs, readTimeout)
      deadline = earlierOf(deadline, new Deadline(arrivedMs + ms, clock))
    }
    if (needsMs !== undefined && !(needsMs >= 0)) validate('needsMs', needsMs, number({ min: 0 }))
    if (callerAttempt !== undefined) validate('callerAttempt', callerAttempt, integer({ min: 1 }))
  } catch (error) {
    return refuse(error)
  }
  // The lane is created only if no stage before the breaker refuses the call.
  const lane = shared.lanes.expected(name)
  const { decisions } = observers
  const follower = decisions?.begin(given, lane, priority, arrivedMs)
  const facts: CallFacts = {
    kind: 'call',
    options: follower?.listening() ?? given,
    lane,
    priority,
    arrivedMs,
    deadlineMs: deadline?.atMs ?? Number.POSITIVE_INFINITY,
    attempt: 1,
    cost: given.cost,
    costs: NO_COSTS,
    costsUnder: undefined,
  }
  let refusal: unknown
  try {
    refusal = pipeline.check(facts, arrivedMs)
  } catch (error) {
    return refuse(error)
  }
  if (refusal !== undefined) {
    counters.refused(refusal, facts.options.tier)
    decisions?.refused(follower, refusal, () => facts)
    return refuse(refusal)
  }
  const all = follower === undefined ? watchers : { ...watchers, follower }
  return new GuardCall(shared, fn, facts, deadline, all).start()
}

/** Every option; `satisfies` keeps the list complete. */
const KNOWN_OPTIONS = new Set(
  Object.keys({
    user: true,
    tier: true,
    ip: true,
    endpoint: true,
    priority: true,
    lane: true,
    cost: true,
    timeoutMs: true,
    needsMs: true,
    signal: true,
    onUserLimit: true,
    onUsage: true,
    costOfUsage: true,
    onShadow: true,
    idempotent: true,
    callerAttempt: true,
    idempotencyKey: true,
    requestId: true,
    traceParent: true,
    cacheKey: true,
    job: true,
  } satisfies Record<keyof RunOptions, true>),
)

/** Throws an `OptionsError` if the caller has set an option that does not exist: a typo could do harm. */
export function checkRunOptions(options: RunOptions): void {
  for (const key in options) {
    // Properties of a prototype are not the caller's options.
    if (KNOWN_OPTIONS.has(key) || !Object.hasOwn(options, key)) continue
    throw unknownOption('run', key, [...KNOWN_OPTIONS])
  }
}
