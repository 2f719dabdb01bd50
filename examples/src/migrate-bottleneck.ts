import { createSpillway } from 'spillway'

const spillway = createSpillway() // with redisStore({ url }) the limit holds for all pods
const mail = spillway.guard('mail', {
  limits: [{ unit: 'requests', limit: 5, windowMs: '1m' }],
  concurrency: { limit: 2 },
  queue: { size: 3, timeoutMs: '1m' },
  timeout: { callMs: '10s' },
})

const send = async (id: number) => `sent ${id}`
const results = await Promise.allSettled([1, 2, 3, 4, 5].map((id) => mail.run(() => send(id))))
console.log(results.map(({ status }) => status).join(' '))
await mail
  .run(() => send(6), { timeoutMs: '1s' })
  .catch(({ code, retryAfterMs }) => console.log(code, retryAfterMs > 1_000))
await spillway.close()
