// test-group: io, slow

/** Everything the shared circuit breaker promises, in memory and on one server; see also `topologies/`. */
import { claimBreakers } from './breaker-claims/all.js'
import { createMemoryFleet, createRedisFleet } from './limit-claims/fleet.js'

claimBreakers(createMemoryFleet())
claimBreakers(createRedisFleet())
