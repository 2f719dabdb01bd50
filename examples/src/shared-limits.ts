import { createSharedRateLimiter, memoryStore } from 'spillway/shared'
import { createVirtualClock } from 'spillway/testing'

// In production: redisStore({ url }) from 'spillway/redis', and no clock.
const clock = createVirtualClock()
const store = memoryStore({ clock })

// Two pods of one fleet share one budget, because it has the same name.
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

// A call that can wait gets the next free permit, without polling.
const later = await clock.until(podA.acquireWithin('5s', { cost: { tokens: 900 } }))
console.log('after', Math.round(clock.now()), 'ms:', later.allowed)

// Reserve an estimate, then settle the actual cost. The difference is free for others immediately.
if (later.allowed) later.permit.settle({ tokens: 300 })
await clock.settle()
console.log(await podB.figures())

// A 429 for one pod pauses all pods.
if (later.allowed) {
  await podA.updateFromResponse({ status: 429, headers: { 'retry-after': '7' } }, later.permit)
}
const refused = await podB.acquire()
console.log(refused.allowed ? 'allowed' : `paused for ${refused.retryAfterMs} ms more`)

await Promise.all([podA.close(), podB.close()])
await store.close()
