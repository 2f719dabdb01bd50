/**
 * Charges of user limits that belong to no guard. Without a guard's watch they find out on their
 * own when the store is unreachable, and then follow their levels' outage rules.
 */

import type { Random } from '../../core/random.js'
import type { Clock } from '../../core/time/clock.js'
import type { Store } from '../../store/port.js'
import { isSharingOff } from '../outage/rules.js'
import { createLevels, type readLevels } from './levels.js'
import { LevelsAlone, type StoreView } from './outage-levels.js'
import { UserCharges } from './user-charges.js'

export interface OwnChargesOptions {
  store: Store
  name: string | undefined
  levels: ReturnType<typeof readLevels>
  /** The number of pods that share levels with the outage rule `share`. */
  expectedPods: number
  clock: Clock
  random: Random
}

export function createOwnCharges(options: OwnChargesOptions): UserCharges {
  const { store, name, levels, expectedPods, clock, random } = options
  const fleet = { pods: expectedPods, rank: expectedPods - 1 }
  const view: StoreView = isSharingOff()
    ? { status: 'off', reachable: false, fleet }
    : { status: 'shared', reachable: true, fleet }
  const alone = store.remote
    ? new LevelsAlone(name ?? 'user limits', view, clock, random)
    : undefined
  return new UserCharges(store, createLevels(levels, name), alone)
}
