// test-group: io, slow

import { createMemoryFleet, createRedisFleet } from './limit-claims/fleet.js'
import { claimQueues } from './queue-claims/all.js'

claimQueues(createMemoryFleet())
claimQueues(createRedisFleet())
