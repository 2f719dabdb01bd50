// docs/how-to/mechanisms/circuit-breaker.md
import { createSpillway } from 'spillway'
import { redisStore } from 'spillway/redis'
import { untilShared } from '../parts/until-shared.mjs'

export async function createBreaker({ call, redisUrl, breaker = { consecutiveFailures: 5 } }) {
  const spillway = createSpillway({ store: redisStore({ url: redisUrl }) })
  const guard = spillway.guard('downstream', {
    breaker: { ...breaker, openMs: '30s' },
    timeout: { callMs: '3s' },
  })
  await untilShared(guard)
  return () => guard.run(call)
}
