/** Messages between the scenario and its pods. */
import type { Opening, PodsPlan } from '@spillway/simulator'

/** Argument of a pod, as JSON. */
export interface PodOptions {
  readonly plan: PodsPlan
  /** Index of the pod. */
  readonly pod: number
  readonly redisPort: number
  readonly vendorPort: number
}

/** When the measured time begins, in milliseconds since 1970. */
export interface Start {
  readonly startMs: number
}

/** `openings` and `commands` are counted during the measured time only. */
export interface PodResult {
  readonly requests: number
  readonly served: number
  readonly commands: Readonly<Record<string, number>>
  readonly openings: readonly Opening[]
  /** Round-trip times to Redis, in order. */
  readonly roundTripsMs: readonly number[]
}

export type FromPod = 'ready' | { readonly result: PodResult }

/** Milliseconds since 1970, with fractions; all processes of a machine agree on it. */
export function nowMs(): number {
  return performance.timeOrigin + performance.now()
}
