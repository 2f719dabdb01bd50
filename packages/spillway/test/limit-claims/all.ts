/** Everything the shared rate limiter promises, on one kind of store. */
import { afterAll, beforeAll, describe } from 'vitest'
import { claimAlgorithms } from './algorithms.js'
import { claimAsking } from './asking.js'
import { claimChanges } from './changes.js'
import { claimCosts } from './costs.js'
import type { Fleet } from './fleet.js'
import { claimKeys } from './keys.js'
import { claimVendorWord } from './vendor-word.js'

export const START_MS = 60_000

export function claimLimits(fleet: Fleet): void {
  describe(`limits in ${fleet.name}`, () => {
    beforeAll(() => fleet.start(), START_MS)
    afterAll(() => fleet.stop())

    claimAlgorithms(fleet)
    claimAsking(fleet)
    claimCosts(fleet)
    claimVendorWord(fleet)
    claimChanges(fleet)
    // Last: it looks at the keys of all the others.
    claimKeys(fleet)
  })
}
