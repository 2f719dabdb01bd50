// For Stryker: the claims about the job queue that need only the store, without loading guards.

import { createMemoryFleet } from '../../packages/spillway/test/limit-claims/memory-fleet.js'
import { claimAdding } from '../../packages/spillway/test/queue-claims/adding.js'
import { claimEnds } from '../../packages/spillway/test/queue-claims/ends.js'
import { claimTaking } from '../../packages/spillway/test/queue-claims/taking.js'
import { claimTenants } from '../../packages/spillway/test/queue-claims/tenants.js'

const fleet = createMemoryFleet()
claimAdding(fleet)
claimTaking(fleet)
claimEnds(fleet)
claimTenants(fleet)
