/** All claims about the job queue, run on one kind of store. On real servers they mostly wait, so several run at once. */
import { afterAll, beforeAll, describe } from 'vitest'
import type { Fleet } from '../limit-claims/fleet.js'
import { START_MS } from '../topologies.js'
import { claimAdding } from './adding.js'
import { claimEnds } from './ends.js'
import { claimFigures } from './figures.js'
import { claimPush } from './push.js'
import { claimTaking } from './taking.js'
import { claimTenantCap } from './tenant-cap.js'
import { claimTenants } from './tenants.js'
import { claimThrottled } from './throttled.js'
import { claimWorkers } from './workers.js'

export function claimQueues(fleet: Fleet): void {
  describe(`job queues in ${fleet.name}`, { concurrent: fleet.kind !== 'memory' }, () => {
    beforeAll(() => fleet.start(), START_MS)
    afterAll(() => fleet.stop())
    claimAdding(fleet)
    claimTaking(fleet)
    claimEnds(fleet)
    claimWorkers(fleet)
    claimTenants(fleet)
    claimFigures(fleet)
    claimThrottled(fleet)
    claimTenantCap(fleet)
    claimPush(fleet)
  })
}
