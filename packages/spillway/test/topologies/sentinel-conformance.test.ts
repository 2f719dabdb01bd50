/** Everything limits and breakers promise, on servers that Sentinels watch over, over all client libraries. */
import { claimBreakers } from '../breaker-claims/all.js'
import { claimLimits } from '../limit-claims/all.js'
import { createRedisFleet } from '../limit-claims/fleet.js'

claimLimits(createRedisFleet('Sentinels'))
claimBreakers(createRedisFleet('Sentinels'))
