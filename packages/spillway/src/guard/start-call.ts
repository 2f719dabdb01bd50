/**
 * The beginning of a call: what is known against it at once is found out before there is anything of
 * it but a few numbers. Overload is when that has to be cheap.
 */
import { checkSignal } from '../core/abort.js'
import { refuse } from '../core/errors.js'
import { duration, number, text, validate } from '../core/options/checks.js'
import { importanceOf, NORMAL_IMPORTANCE } from '../core/options/priority.js'
import { currentDeadline, Deadline, deadlineError, earlierOf } from '../core/time/deadline.js'
import { DEFAULT_LANE } from '../shared/default-lane.js'
import { type CallWatchers, GuardCall } from './call.js'
import type { CallFunction } from './context.js'
import { earlyRefusal } from './known-refusals.js'
import type { Machinery } from './machinery.js'
import type { RunOptions } from './run-options.js'

const readTimeout = duration({ min: 0 })

export function startCall<T>(
  machinery: Machinery,
  fn: CallFunction<T>,
  options: RunOptions,
  watchers: CallWatchers | undefined,
): Promise<T> {
  const { clock, name, tally, decisions } = machinery
  const { signal, priority, timeoutMs, needsMs } = options
  tally.calls++
  if (signal?.aborted === true) return refuse(signal.reason)
  const arrivedMs = clock.now()
  const asked = options.lane ?? DEFAULT_LANE
  let importance = NORMAL_IMPORTANCE
  let deadline = currentDeadline()
  try {
    if (typeof asked !== 'string' || asked === '') validate('lane', asked, text())
    if (signal !== undefined) checkSignal(signal)
    if (priority !== undefined) importance = importanceOf(priority)
    if (timeoutMs !== undefined) {
      deadline = earlierOf(deadline, new Deadline(arrivedMs + readMs(timeoutMs), clock))
    }
    if (needsMs !== undefined && !(needsMs >= 0)) validate('needsMs', needsMs, number({ min: 0 }))
  } catch (error) {
    return refuse(error)
  }
  // Only once nothing before the breaker refuses it does the call create its lane.
  const lane = machinery.lanes.expected(asked)
  const follower = decisions?.begin(options, lane, importance, arrivedMs)
  const late = (deadline?.remainingMs() ?? Number.POSITIVE_INFINITY) <= (needsMs ?? 0)
  const deadlineMs = deadline?.atMs ?? Number.POSITIVE_INFINITY
  const error = late
    ? deadlineError('room', name)
    : earlyRefusal(machinery, options, lane, importance, arrivedMs, deadlineMs)
  if (error !== undefined) {
    tally.refused(error)
    decisions?.refused(follower, error, () => ({ options, lane, importance, arrivedMs }))
    return refuse(error)
  }
  const all = follower === undefined ? watchers : { ...watchers, follower }
  return new GuardCall(machinery, fn, options, all, lane, importance, arrivedMs, deadline).start()
}

function readMs(timeoutMs: NonNullable<RunOptions['timeoutMs']>): number {
  if (typeof timeoutMs === 'number' && timeoutMs >= 0) return timeoutMs
  return validate('timeoutMs', timeoutMs, readTimeout)
}
