/** All claims about the shared rate limiter, run on one kind of store. On real servers they mostly wait, so several run at once. */
import { afterAll, beforeAll, describe } from 'vitest'
import { START_MS } from '../topologies.js'
import { claimAcquiring } from './acquiring.js'
import { claimAlgorithms } from './algorithms.js'
import { claimChanges } from './changes.js'
import { claimCosts } from './costs.js'
import type { Fleet } from './fleet.js'
import { claimKeys } from './keys.js'
import { claimPools } from './pools.js'
import { claimVendorFeedback } from './vendor-feedback.js'

export function claimLimits(fleet: Fleet): void {
  describe(`shared limits in ${fleet.name}`, { concurrent: fleet.kind !== 'memory' }, () => {
    beforeAll(() => fleet.start(), START_MS)
    afterAll(() => fleet.stop())

    claimAlgorithms(fleet)
    claimAcquiring(fleet)
    claimCosts(fleet)
    claimVendorFeedback(fleet)
    claimChanges(fleet)
    claimPools(fleet)
    // Last, because it inspects the keys of all the other tests.
    claimKeys(fleet)
  })
}
