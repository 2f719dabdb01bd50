/** What all bodies of one guard have in common: how long each of them may keep its call waiting. */
import type { Clock } from '../../core/time/clock.js'
import { TimerList } from '../../core/time/timer-list.js'
import type { LocalTimeout } from '../../local/timeout/timeout.js'

export interface BodyLimits {
  readonly name: string
  readonly clock: Clock
  /** A body nobody has read for so long is let go. */
  readonly unreadMs: number
  readonly firstByteMs: number | undefined
  readonly idleMs: number | undefined
  /** Their delay is the shortest of these limits. */
  readonly alarms: TimerList
}

export function bodyLimits(
  { name, clock, firstByteMs, idleMs }: LocalTimeout,
  unreadMs: number,
): BodyLimits {
  const shortestMs = Math.min(unreadMs, firstByteMs ?? unreadMs, idleMs ?? unreadMs)
  // Who reads an answer keeps the process alive, or does not mind if it ends.
  const alarms = new TimerList(clock, shortestMs, { keepsAlive: false })
  return { name, clock, unreadMs, firstByteMs, idleMs, alarms }
}
