// test-group: io, slow

/** Claims about limits, breakers and job queues with Sentinels and all client libraries. */
import { describe } from 'vitest'
import { claimBreakers } from '../breaker-claims/all.js'
import { sampleTests } from '../concurrent-tests.js'
import { claimLimits } from '../limit-claims/all.js'
import { createRedisFleet } from '../limit-claims/fleet.js'
import { usualOrLong } from '../long-run.js'
import { claimQueues } from '../queue-claims/all.js'
import { sharedServers } from '../topologies.js'
import { claimBreakerTwins } from '../twin-claims/breakers.js'
import { claimLimitTwins } from '../twin-claims/limits.js'
import { claimPiggybackTwins } from '../twin-claims/piggyback.js'
import { claimQueueTwins } from '../twin-claims/queues.js'
import { twinRedis } from '../twin-claims/twin-redis.js'

const begin = sharedServers('Sentinels')
/** The scripts are the same everywhere, and the test on one server runs several times as many. */
const HISTORIES = usualOrLong(1, 11)

// A quarter of the claims: once the master is found, it is one server. All run in `npm run test:long`.
sampleTests(usualOrLong(4, 1))

// Each `describe` starts after the one before it, because some claims inspect all keys.
describe('limits', () => claimLimits(createRedisFleet('Sentinels', begin)))
describe('breakers', () => claimBreakers(createRedisFleet('Sentinels', begin)))
describe('job queues', () => claimQueues(createRedisFleet('Sentinels', begin)))
describe('Lua twins with Sentinels', () => {
  const twin = twinRedis(begin)
  claimLimitTwins(twin, HISTORIES)
  claimBreakerTwins(twin, HISTORIES)
  claimPiggybackTwins(twin, HISTORIES)
  claimQueueTwins(twin, HISTORIES)
})
