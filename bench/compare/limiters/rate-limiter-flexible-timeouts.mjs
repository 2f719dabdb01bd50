// RLWrapperTimeouts uses the insurance limiter if Redis does not answer in time. RateLimiterQueue does not accept it,
// so callers do not wait: they are refused with `msBeforeNext`.
// https://github.com/animir/node-rate-limiter-flexible/wiki/RLWrapperTimeouts (500 ms is its example)
import Redis from 'ioredis'
import {
  RateLimiterMemory,
  RateLimiterRedis,
  RateLimiterRes,
  RLWrapperTimeouts,
} from 'rate-limiter-flexible'
import { Refused } from './refused.mjs'

export async function createLimiter({ redis, name, limit, windowMs, pods, work }) {
  const storeClient = new Redis({ ...redis, enableOfflineQueue: false })
  storeClient.on('error', () => {})
  await new Promise((resolve) => storeClient.once('ready', resolve))
  const duration = windowMs / 1_000
  const limiter = new RLWrapperTimeouts({
    limiter: new RateLimiterRedis({ storeClient, keyPrefix: name, points: limit, duration }),
    timeoutMs: 500,
    insuranceLimiter: new RateLimiterMemory({ points: Math.floor(limit / pods), duration }),
  })
  return async () => {
    try {
      await limiter.consume('vendor')
    } catch (reason) {
      throw reason instanceof RateLimiterRes ? new Refused(reason.msBeforeNext) : reason
    }
    await work()
  }
}
