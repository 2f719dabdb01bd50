/**
 * The beginning of a call: reads its options and asks the pipeline whether it may begin. A call that is refused
 * here has cost little more than its error, which is what counts under overload.
 */
import { checkSignal } from '../../core/abort.js'
import { refuse } from '../../core/errors.js'
import { duration, number, text, validate } from '../../core/options/checks.js'
import { importanceOf, NORMAL_IMPORTANCE } from '../../core/options/priority.js'
import { currentDeadline, Deadline, earlierOf } from '../../core/time/deadline.js'
import { DEFAULT_LANE } from '../../shared/default-lane.js'
import { checkRunOptions, type RunOptions } from '../run-options.js'
import { type CallDependencies, type CallWatchers, GuardCall } from './call.js'
import type { CallFunction } from './context.js'
import type { StageCall } from './stage.js'

const readTimeout = duration({ min: 0 })
const NO_COSTS: readonly number[] = []

export function startCall<T>(
  shared: CallDependencies,
  fn: CallFunction<T>,
  given: RunOptions,
  watchers: CallWatchers | undefined,
): Promise<T> {
  const { clock, counters, observers, pipeline } = shared
  const { signal, priority: word, timeoutMs, needsMs } = given
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
    if (word !== undefined) priority = importanceOf(word)
    if (timeoutMs !== undefined) {
      deadline = earlierOf(deadline, new Deadline(arrivedMs + readMs(timeoutMs), clock))
    }
    if (needsMs !== undefined && !(needsMs >= 0)) validate('needsMs', needsMs, number({ min: 0 }))
  } catch (error) {
    return refuse(error)
  }
  // Only once nothing before the breaker refuses it does the call create its lane.
  const lane = shared.lanes.expected(name)
  const { decisions } = observers
  const follower = decisions?.begin(given, lane, priority, arrivedMs)
  const facts: StageCall = {
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
    counters.refused(refusal)
    decisions?.refused(follower, refusal, () => facts)
    return refuse(refusal)
  }
  const all = follower === undefined ? watchers : { ...watchers, follower }
  return new GuardCall(shared, fn, facts, deadline, all).start()
}

function readMs(timeoutMs: NonNullable<RunOptions['timeoutMs']>): number {
  if (typeof timeoutMs === 'number' && timeoutMs >= 0) return timeoutMs
  return validate('timeoutMs', timeoutMs, readTimeout)
}
