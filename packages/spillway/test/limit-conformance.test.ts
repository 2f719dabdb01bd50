// test-group: io, slow

/** The claims about shared rate limits on one Redis server; see also `topologies/`. */
import { claimLimits } from './limit-claims/all.js'
import { createRedisFleet } from './limit-claims/fleet.js'

claimLimits(createRedisFleet())
