// test-group: io, slow

/** Everything the shared rate limiter promises, in memory and on one server; see also `topologies/`. */
import { claimLimits } from './limit-claims/all.js'
import { createMemoryFleet, createRedisFleet } from './limit-claims/fleet.js'

claimLimits(createMemoryFleet())
claimLimits(createRedisFleet())
