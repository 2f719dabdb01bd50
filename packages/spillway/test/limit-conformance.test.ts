/** Everything the shared rate limiter promises, on every store there is. */
import { afterAll, beforeAll, describe } from 'vitest'
import { claimAlgorithms } from './limit-claims/algorithms.js'
import { claimAsking } from './limit-claims/asking.js'
import { claimChanges } from './limit-claims/changes.js'
import { claimCosts } from './limit-claims/costs.js'
import { createMemoryFleet, createRedisFleet } from './limit-claims/fleet.js'
import { claimKeys } from './limit-claims/keys.js'
import { claimVendorWord } from './limit-claims/vendor-word.js'

describe.each([createMemoryFleet(), createRedisFleet()])('limits in $kind', (fleet) => {
  beforeAll(() => fleet.start())
  afterAll(() => fleet.stop())

  claimAlgorithms(fleet)
  claimAsking(fleet)
  claimCosts(fleet)
  claimVendorWord(fleet)
  claimChanges(fleet)
  // Last: it looks at the keys of all the others.
  claimKeys(fleet)
})
