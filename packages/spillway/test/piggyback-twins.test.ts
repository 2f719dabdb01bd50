// test-group: io

import { TOPOLOGIES } from './topologies.js'
import { claimPiggybackTwins } from './twin-claims/piggyback.js'
import { twinRedis } from './twin-claims/twin-redis.js'

claimPiggybackTwins(twinRedis(TOPOLOGIES['one server']))
