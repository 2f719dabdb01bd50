// test-group: io

import { TOPOLOGIES } from './topologies.js'
import { claimPodTwins } from './twin-claims/pods.js'
import { twinRedis } from './twin-claims/twin-redis.js'

claimPodTwins(twinRedis(TOPOLOGIES['one server']))
