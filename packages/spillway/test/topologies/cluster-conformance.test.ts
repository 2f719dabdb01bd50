/** Everything limits and breakers promise, on a cluster of six nodes, over all client libraries. */
import { claimBreakers } from '../breaker-claims/all.js'
import { claimLimits } from '../limit-claims/all.js'
import { createRedisFleet } from '../limit-claims/fleet.js'

claimLimits(createRedisFleet('a cluster'))
claimBreakers(createRedisFleet('a cluster'))
