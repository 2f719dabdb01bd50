// For Stryker: the claims about shared limits on the memory store.

import { claimLimits } from '../../packages/spillway/test/limit-claims/all.js'
import { createMemoryFleet } from '../../packages/spillway/test/limit-claims/memory-fleet.js'

claimLimits(createMemoryFleet())
