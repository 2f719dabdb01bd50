// docs/how-to/guard.md: a limit, a queue for calls that have to wait, a timeout. While Redis is unreachable, each pod
// uses its share of the limit (`outage: 'share'`, the default).
import { createSpillway, SpillwayError } from 'spillway'
import { redisStore } from 'spillway/redis'
import { untilShared } from '../parts/until-shared.mjs'
import { Refused } from './refused.mjs'

export async function createLimiter({ redis, name, limit, windowMs, pods, work }) {
  const spillway = createSpillway({
    store: redisStore({ url: redis.url }),
    expectedPods: pods,
  })
  const guard = spillway.guard(name, {
    limits: [{ unit: 'requests', limit, windowMs }],
    queue: { size: 10_000, timeoutMs: '30s' },
    timeout: { callMs: '10s' },
  })
  await untilShared(guard)
  return async () => {
    try {
      await guard.run(work)
    } catch (error) {
      const refused = error instanceof SpillwayError && error.code !== 'CALL_TIMEOUT'
      throw refused ? new Refused(error.retryAfterMs) : error
    }
  }
}
