// For calls to other services the wiki recommends RateLimiterQueue: calls beyond the limit wait for the next window.
// https://github.com/animir/node-rate-limiter-flexible/wiki/RateLimiterQueue `enableOfflineQueue: false` for ioredis:
// https://github.com/animir/node-rate-limiter-flexible/wiki/Redis The insurance limiter has a share of the points for
// each process: https://github.com/animir/node-rate-limiter-flexible/wiki/Insurance-Strategy
import Redis from 'ioredis'
import { RateLimiterMemory, RateLimiterQueue, RateLimiterRedis } from 'rate-limiter-flexible'

export async function createLimiter({ redis, name, limit, windowMs, pods, work }) {
  const storeClient = new Redis({ ...redis, enableOfflineQueue: false })
  storeClient.on('error', () => {})
  await new Promise((resolve) => storeClient.once('ready', resolve))
  const duration = windowMs / 1_000
  const limiter = new RateLimiterRedis({
    storeClient,
    keyPrefix: name,
    points: limit,
    duration,
    insuranceLimiter: new RateLimiterMemory({ points: Math.floor(limit / pods), duration }),
  })
  const queue = new RateLimiterQueue(limiter)
  return async () => {
    await queue.removeTokens(1)
    await work()
  }
}
