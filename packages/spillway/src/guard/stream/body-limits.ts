/** The limits of all streamed bodies of one guard. */
import type { Clock } from '../../core/time/clock.js'
import { TimerList } from '../../core/time/timer-list.js'
import type { LocalTimeout } from '../../local/timeout/timeout.js'

export interface BodyLimits {
  readonly name: string
  readonly clock: Clock
  /** A body that is not read for this long is abandoned. */
  readonly unreadMs: number
  readonly firstByteMs: number | undefined
  readonly idleMs: number | undefined
  /** The timers of all bodies; their delay is the shortest of these limits. */
  readonly alarms: TimerList
}

export function bodyLimits(
  { name, clock, firstByteMs, idleMs }: LocalTimeout,
  unreadMs: number,
): BodyLimits {
  const shortestMs = Math.min(unreadMs, firstByteMs ?? unreadMs, idleMs ?? unreadMs)
  // The reader of an answer keeps the process alive if that is needed.
  const alarms = new TimerList(clock, shortestMs, { keepsAlive: false })
  return { name, clock, unreadMs, firstByteMs, idleMs, alarms }
}
