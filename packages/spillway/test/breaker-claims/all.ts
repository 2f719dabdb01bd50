/** All claims about the shared circuit breaker, run on one kind of store. On real servers they mostly wait, so several run at once. */
import { afterAll, beforeAll, describe } from 'vitest'
import type { Fleet } from '../limit-claims/fleet.js'
import { START_MS } from '../topologies.js'
import { claimKeys } from './keys.js'
import { claimManualControl } from './manual-control.js'
import { claimMembers } from './members.js'
import { claimPiggyback } from './piggyback.js'
import { claimProbing } from './probing.js'
import { claimQuorum } from './quorum.js'
import { claimReading } from './reading-state.js'
import { claimTripping } from './tripping.js'

export function claimBreakers(fleet: Fleet): void {
  describe(`circuit breaker in ${fleet.name}`, { concurrent: fleet.kind !== 'memory' }, () => {
    beforeAll(() => fleet.start(), START_MS)
    afterAll(() => fleet.stop())

    claimTripping(fleet)
    claimProbing(fleet)
    claimManualControl(fleet)
    claimReading(fleet)
    claimQuorum(fleet)
    claimMembers(fleet)
    claimPiggyback(fleet)
    // Last, because it inspects the keys of all the other tests.
    claimKeys(fleet)
  })
}
