// test-group: io, slow

import { createRedisFleet } from './limit-claims/fleet.js'
import { claimQueues } from './queue-claims/all.js'

claimQueues(createRedisFleet())
