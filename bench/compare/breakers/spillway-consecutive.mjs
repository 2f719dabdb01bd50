// docs/how-to/mechanisms/circuit-breaker.md
import { setTimeout as sleep } from 'node:timers/promises'
import { createSpillway } from 'spillway'
import { redisStore } from 'spillway/redis'

export async function createBreaker({ call, redisUrl, breaker = { consecutiveFailures: 5 } }) {
  const spillway = createSpillway({ store: redisStore({ url: redisUrl }) })
  const guard = spillway.guard('downstream', {
    breaker: { ...breaker, openMs: '30s' },
    timeout: { callMs: '3s' },
  })
  while (guard.snapshot().store.status !== 'shared') await sleep(10)
  return () => guard.run(call)
}
