// test-group: io, slow

/** The claims about shared circuit breakers on one Redis server; see also `topologies/`. */
import { claimBreakers } from './breaker-claims/all.js'
import { createRedisFleet } from './limit-claims/fleet.js'

claimBreakers(createRedisFleet())
