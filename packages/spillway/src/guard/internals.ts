/** What a Spillway is made of, for those who show it or operate it. Users see the interface alone. */

import type { Random } from '../core/random.js'
import type { Clock } from '../core/time/clock.js'
import type { Membership } from '../shared/membership.js'
import type { Store } from '../store/port.js'
import type { PodNote } from './fleet/pod-status.js'
import type { SharedGuard } from './guard.js'
import type { WorkableQueue } from './jobs/api.js'

export interface SpillwayInside {
  readonly clock: Clock
  readonly random: Random
  readonly store: Store
  readonly membership: Membership
  /** Those that are open. */
  guards(): SharedGuard[]
  /** Hears of every guard that is made; returns what stops it. */
  onGuard(listener: () => void): () => void
  /** It is being closed; somebody has asked it to. */
  standing(): { draining: boolean; asked: boolean; notes: readonly PodNote[] }
  /** Tells everybody who looks at any pod, with the next heartbeats. */
  note(text: string): void
  queues(): { name: string; guard: string; queue: WorkableQueue<unknown, unknown> }[]
}

const insides = new WeakMap<object, SpillwayInside>()

export function reveal(spillway: object, inside: SpillwayInside): void {
  insides.set(spillway, inside)
}

/** Nothing, if it is none of ours: somebody's wrapper, or of another copy of this library. */
export function insideOf(spillway: object): SpillwayInside | undefined {
  return insides.get(spillway)
}
