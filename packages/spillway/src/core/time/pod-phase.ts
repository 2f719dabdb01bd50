/**
 * Spreads periodic work of a fleet. Each pod does all of its periodic work at the same moment of
 * the period, so it wakes up once. The moment follows from the pod's name, so pods do not hit Redis
 * together.
 */
import { stableHash } from '../stable-hash.js'

/** Milliseconds until this pod's next moment in a period of `everyMs`. */
export function untilPodPhaseMs(pod: string, everyMs: number, nowMs: number): number {
  const phaseMs = stableHash(pod, 0) * everyMs
  const sinceMs = (((nowMs - phaseMs) % everyMs) + everyMs) % everyMs
  // A timer that fired slightly early must not get the same moment again.
  return sinceMs > everyMs - 1 ? 2 * everyMs - sinceMs : everyMs - sinceMs
}
