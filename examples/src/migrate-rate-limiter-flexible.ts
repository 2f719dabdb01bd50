import { createUserLimits, memoryStore } from 'spillway/shared'

const store = memoryStore() // redisStore({ url }) from 'spillway/redis' shares the counts
const limiter = createUserLimits({
  store,
  name: 'api',
  levels: [{ per: 'user', limit: 2, windowMs: '1m' }],
})

for (let request = 1; request <= 3; request++) {
  const { allowed, retryAfterMs } = await limiter.check({ user: 'ann' })
  if (allowed) console.log(`${request}: allowed`)
  else console.log(`${request}: 429, retry after a wait: ${retryAfterMs > 0}`)
}
await store.close()
