/** What this pod knows against a call without asking anybody, the cheapest reasons first. */
import { closedError, type SpillwayError } from '../core/errors.js'
import type { CallCost } from '../shared/permit-queue/ports.js'
import type { Machinery } from './machinery.js'
import { busyError, fullError } from './refusals.js'
import type { RunOptions } from './run-options.js'
import type { Shadow } from './shadow.js'
import { shedRefusal } from './shed.js'

/** What is known of a call that has just come. */
export interface NewCall extends CallCost {
  readonly lane: string
  /** As a number. */
  readonly priority: number
  readonly arrivedMs: number
  readonly deadlineMs: number
}

/** Overload, an open breaker, a throttled lane. Of a call that is not even an object yet. */
export function earlyRefusal(
  machinery: Machinery,
  options: RunOptions,
  lane: string,
  importance: number,
  arrivedMs: number,
  deadlineMs: number,
): SpillwayError | undefined {
  const { name, closed, breaker, throttles, shadow } = machinery
  if (closed) return closedError('room', name)
  const shed = shedRefusal(machinery, options, importance, arrivedMs, deadlineMs)
  if (shadow !== undefined) return unlessSpared(machinery, options, lane, arrivedMs, shadow, shed)
  const refused = shed ?? breaker?.refuse(lane)
  if (throttles === undefined || refused !== undefined) return refused
  return throttles.refuse(lane, arrivedMs)
}

/** The same where some stages only report. */
function unlessSpared(
  { breaker, throttles }: Machinery,
  options: RunOptions,
  lane: string,
  arrivedMs: number,
  shadow: Shadow,
  shed: SpillwayError | undefined,
): SpillwayError | undefined {
  if (shed !== undefined && !shadow.spares(shed, lane, options)) return shed
  const open = breaker?.refuse(lane)
  if (open !== undefined) return open
  shadow.noteOpen(lane, options)
  const throttled = throttles?.refuse(lane, arrivedMs)
  if (throttled === undefined || shadow.spares(throttled, lane, options)) return undefined
  return throttled
}

/** The lane is blocked for longer than the call can wait, or there is no place to wait in. */
export function waitRefusal(machinery: Machinery, call: NewCall): SpillwayError | undefined {
  const { room, dispatcher } = machinery
  const nowMs = call.arrivedMs
  const limited = limitedRefusal(machinery, call, nowMs)
  if (limited !== undefined || !room.full) return limited
  const spare = dispatcher.spare(call.lane, call, nowMs)
  return room.hasPlace(call.priority, spare) ? undefined : noPlaceError(machinery)
}

/** The lane is known to be blocked for longer than this call can wait. */
export function limitedRefusal(
  { dispatcher, options }: Machinery,
  call: NewCall,
  nowMs: number,
): SpillwayError | undefined {
  const { lane } = call
  const ms = dispatcher.blockedMs(lane, call, nowMs)
  if (ms === 0) return undefined
  const leftMs = Math.max(0, call.deadlineMs - nowMs)
  if (ms <= Math.min(options.queue?.timeoutMs ?? 0, leftMs)) return undefined
  return dispatcher.limitedError(lane, ms, call)
}

/** Without a room it is what it would wait for that is missing. */
export function noPlaceError({ name, room, slots, clock, options }: Machinery): SpillwayError {
  if (options.queue !== undefined) return fullError(name, room.length, options.queue.size)
  const stage = slots.paceWaitMs(clock.now()) > 0 ? 'pace' : 'concurrency'
  return busyError(name, stage, slots, clock.now())
}
