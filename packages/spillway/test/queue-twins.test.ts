// test-group: io, slow

import { TOPOLOGIES } from './topologies.js'
import { claimQueueTwins } from './twin-claims/queues.js'
import { twinRedis } from './twin-claims/twin-redis.js'

claimQueueTwins(twinRedis(TOPOLOGIES['one server']))
