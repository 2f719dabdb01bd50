import { createSpillway, onEvent } from 'spillway'
import { createRandom, createVendor, createVirtualClock } from 'spillway/testing'

// In production: redisStore({ url }) from 'spillway/redis', and no clock.
const clock = createVirtualClock()
const spillway = createSpillway({ clock })

// Configured for 200 requests per second. The vendor gives 50.
const guard = spillway.guard('openai', {
  limits: [{ limit: 200, windowMs: '1s', learn: true }],
  timeout: { callMs: '10s' },
  queue: { size: 100, timeoutMs: '30s' },
})
const limits = [{ limit: 50, windowMs: 1_000 }]
const vendor = createVendor({ clock, random: createRandom(1), serviceMs: 100, limits })

onEvent((event) => {
  if (event.type !== 'limit.learned') return
  console.log(`${event.limit}: configured ${event.configured}, vendor gives ${event.effective}`)
})

// 60 callers, each with one request at a time.
let isOpen = true
const callers = Array.from({ length: 60 }, async () => {
  while (isOpen) await guard.run(() => vendor.call())
})

for (let second = 0; second <= 10; second += 5) {
  const before = { ...vendor.calls }
  await clock.advance(5_000)
  const refused = vendor.calls.throttled - before.throttled
  const answered = vendor.calls.succeeded - before.succeeded
  console.log(`seconds ${second} to ${second + 5}: ${answered} answered, ${refused} refused`)
}

isOpen = false
await clock.until(Promise.all(callers))
await spillway.close()
