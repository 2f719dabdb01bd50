/** The internals of a Spillway, for dashboards and operators. Users see only its interface. */

import type { Random } from '../core/random.js'
import type { Clock } from '../core/time/clock.js'
import type { Membership } from '../shared/membership.js'
import type { Store } from '../store/port.js'
import type { PodNote } from './fleet/pod-status.js'
import type { SharedGuard } from './guard.js'
import type { WorkableJobQueue } from './jobs/api.js'

export interface SpillwayInternals {
  readonly clock: Clock
  readonly random: Random
  readonly store: Store
  readonly membership: Membership
  /** Open guards. */
  guards(): SharedGuard[]
  /** Calls `listener` for every new guard; returns the function that stops it. */
  onGuard(listener: () => void): () => void
  /** Whether it is closing, or an operator has started a drain. */
  standing(): { draining: boolean; drainRequested: boolean; notes: readonly PodNote[] }
  /** Shows a note on the dashboards of all pods, with the next heartbeats. */
  note(text: string): void
  queues(): { name: string; guard: string; queue: WorkableJobQueue<unknown, unknown> }[]
}

const internalsBySpillway = new WeakMap<object, SpillwayInternals>()

export function registerInternals(spillway: object, internals: SpillwayInternals): void {
  internalsBySpillway.set(spillway, internals)
}

/** Undefined for a wrapper, or for a Spillway of another copy of this library. */
export function internalsOf(spillway: object): SpillwayInternals | undefined {
  return internalsBySpillway.get(spillway)
}
