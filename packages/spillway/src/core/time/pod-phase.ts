/**
 * What a pod does by itself every so often it does all at once, and at another moment than other pods:
 * one wake-up for everything, and no fleet that knocks in step.
 */
import { placeOf } from '../stable-hash.js'

/** How long until the next beat of this pod, of those that come every so often. */
export function untilBeatMs(pod: string, everyMs: number, nowMs: number): number {
  const phaseMs = placeOf(pod, 0) * everyMs
  const sinceMs = (((nowMs - phaseMs) % everyMs) + everyMs) % everyMs
  // Not the one it has just had, by a timer that was a hair early.
  return sinceMs > everyMs - 1 ? 2 * everyMs - sinceMs : everyMs - sinceMs
}
