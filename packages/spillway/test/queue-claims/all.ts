/** All claims about the job queue, run on one kind of store. */
import { afterAll, beforeAll, describe } from 'vitest'
import type { Fleet } from '../limit-claims/fleet.js'
import { START_MS } from '../topologies.js'
import { claimAdding } from './adding.js'
import { claimEnds } from './ends.js'
import { claimTaking } from './taking.js'
import { claimTenants } from './tenants.js'
import { claimTold } from './told.js'
import { claimWorkers } from './workers.js'

export function claimQueues(fleet: Fleet): void {
  describe(`job queues in ${fleet.name}`, () => {
    beforeAll(() => fleet.start(), START_MS)
    afterAll(() => fleet.stop())
    claimAdding(fleet)
    claimTaking(fleet)
    claimEnds(fleet)
    claimWorkers(fleet)
    claimTenants(fleet)
    claimTold(fleet)
  })
}
