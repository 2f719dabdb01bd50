/** Messages between the scenario and the processes with its pods. */
import type { Opening, PodsPlan } from '@spillway/simulator'

/** Arguments of a process: its pods are numbers `from` to `until`, without `until`. */
export interface PodGroup {
  readonly plan: PodsPlan
  readonly from: number
  readonly until: number
  readonly redisPort: number
  readonly vendorPort: number
}

/** `startMs`: when the measured time begins, in milliseconds since 1970. */
export type ToGroup = { readonly create: PodGroup } | { readonly startMs: number }

/** Openings and commands belong to the measured time. */
export interface GroupResult {
  readonly requests: number
  readonly served: number
  readonly commands: Readonly<Record<string, number>>
  readonly openings: readonly Opening[]
  /** Round-trip times to Redis, in order, a sample. */
  readonly roundTripsMs: readonly number[]
}

export type FromGroup = 'ready' | { readonly result: GroupResult }

/** Milliseconds since 1970, with fractions; all processes of a machine agree on it. */
export function nowMs(): number {
  return performance.timeOrigin + performance.now()
}
