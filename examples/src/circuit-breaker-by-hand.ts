import { createCircuitBreaker } from 'spillway/shared'
import { createVirtualClock } from 'spillway/testing'

// Without a store: for this process alone.
const clock = createVirtualClock()
const breaker = createCircuitBreaker({
  name: 'openai',
  consecutiveFailures: 3,
  openMs: '30s',
  clock,
})

/** For calls that cannot be wrapped: get a permit before the call and report its outcome afterwards. */
async function handle(lane: string, status: number) {
  const answer = await breaker.allow({ lane })
  if (!answer.allowed) return console.log(`${lane}: ${answer.error.message}`)
  breaker.record(status >= 500 ? 'failure' : 'success', answer.permit)
  console.log(`${lane}: answered with ${status}`)
}

// Each lane has a breaker of its own.
for (const status of [503, 503, 503, 200]) await handle('gpt-4o', status)
await handle('gpt-4o-mini', 200)

// An operator closes the breaker and resets its counts.
await breaker.reset({ lane: 'gpt-4o' })
await handle('gpt-4o', 200)

// Two operators isolate the lane. It stays isolated until both have released it.
const lane = 'gpt-4o'
await breaker.isolate('10m', { lane, holder: 'migration' })
await breaker.isolate('1h', { lane, holder: 'ann' })
await breaker.release({ lane, holder: 'ann' })
await handle(lane, 200)
await clock.advance(600_000)
await handle(lane, 200)

await breaker.close()
