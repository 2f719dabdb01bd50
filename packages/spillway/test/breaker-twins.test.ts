// test-group: io

import { TOPOLOGIES } from './topologies.js'
import { claimBreakerTwins } from './twin-claims/breakers.js'
import { twinRedis } from './twin-claims/twin-redis.js'

claimBreakerTwins(twinRedis(TOPOLOGIES['one server']))
