/** Everything the shared circuit breaker promises, on every store there is. */
import { afterAll, beforeAll, describe } from 'vitest'
import { claimByHand } from './breaker-claims/by-hand.js'
import { claimKeys } from './breaker-claims/keys.js'
import { claimLooking } from './breaker-claims/looking.js'
import { claimMembers } from './breaker-claims/members.js'
import { claimProbing } from './breaker-claims/probing.js'
import { claimQuorum } from './breaker-claims/quorum.js'
import { claimRiding } from './breaker-claims/riding.js'
import { claimTripping } from './breaker-claims/tripping.js'
import { createMemoryFleet, createRedisFleet } from './limit-claims/fleet.js'

describe.each([createMemoryFleet(), createRedisFleet()])('breakers in $kind', (fleet) => {
  beforeAll(() => fleet.start())
  afterAll(() => fleet.stop())

  claimTripping(fleet)
  claimProbing(fleet)
  claimByHand(fleet)
  claimLooking(fleet)
  claimQuorum(fleet)
  claimMembers(fleet)
  claimRiding(fleet)
  // Last: it looks at the keys of all the others.
  claimKeys(fleet)
})
