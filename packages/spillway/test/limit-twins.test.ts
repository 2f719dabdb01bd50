// test-group: io, slow

import { TOPOLOGIES } from './topologies.js'
import { claimLimitTwins } from './twin-claims/limits.js'
import { twinRedis } from './twin-claims/twin-redis.js'

claimLimitTwins(twinRedis(TOPOLOGIES['one server']))
