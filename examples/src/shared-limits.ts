import { createSharedRateLimiter, memoryStore } from 'spillway/shared'
import { createVirtualClock } from 'spillway/testing'

// In production: redisStore({ url }) from 'spillway/redis', and no clock.
const clock = createVirtualClock()
const store = memoryStore({ clock })

// Two pods of one fleet: the name says that they share one budget.
const limits = [
  { unit: 'requests', limit: 10, windowMs: '1s' },
  { unit: 'tokens', limit: 9_000, windowMs: '1s' },
] as const
const podA = createSharedRateLimiter({ name: 'openai', store, limits, clock })
const podB = createSharedRateLimiter({ name: 'openai', store, limits, clock })

// 15 calls at once, over both pods: 10 pass, wherever they are made.
const calls = Array.from({ length: 15 }, (_, i) => (i % 2 === 0 ? podA : podB).acquire())
const answers = await Promise.all(calls)
console.log('passed at once:', answers.filter(({ allowed }) => allowed).length)

// Who can wait gets the next one that comes free, without asking again and again.
const later = await clock.until(podA.acquireWithin('5s', { cost: { tokens: 900 } }))
console.log('after', Math.round(clock.now()), 'ms:', later.allowed)

// Book an estimate, settle what it really was: the difference is free for others at once.
if (later.allowed) later.permit.settle({ tokens: 300 })
await clock.settle()
console.log(await podB.figures())

// One pod's 429 slows all of them.
if (later.allowed) {
  await podA.updateFromResponse({ status: 429, headers: { 'retry-after': '7' } }, later.permit)
}
const refused = await podB.acquire()
console.log(refused.allowed ? 'allowed' : `paused for ${refused.retryAfterMs} ms more`)

await Promise.all([podA.close(), podB.close()])
await store.close()
