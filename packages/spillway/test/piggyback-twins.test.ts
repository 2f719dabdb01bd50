// test-group: io

import { TOPOLOGIES } from './topologies.js'
import { claimRideTwins } from './twin-claims/rides.js'
import { twinRedis } from './twin-claims/twin-redis.js'

claimRideTwins(twinRedis(TOPOLOGIES['one server']))
