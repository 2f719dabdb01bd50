import { fastify } from 'fastify'
import { createHealth, createSpillway } from 'spillway'
import { spillwayFastify } from 'spillway/fastify'

const spillway = createSpillway()
const vendor = spillway.guard('vendor', { timeout: { callMs: '30s' }, concurrency: { limit: 50 } })

const app = fastify()
await app.register(spillwayFastify, {
  // For a fleet: store: redisStore({ url }), from 'spillway/redis'.
  limits: [
    { per: 'tier', limit: { free: 100, pro: 1_000 }, windowMs: '1m' },
    { per: 'user', limit: 2, windowMs: '1m' },
  ],
  // From a checked token, in production: a client must not choose its own tier.
  identify: ({ headers }) => ({ user: String(headers.authorization ?? 'anonymous'), tier: 'free' }),
  trustedProxies: ['10.0.0.0/8'],
  health: createHealth({ spillway }),
})
// `request.spillway` has the user and tier. The caller's deadline is in the context.
app.get('/answer', ({ spillway: call }) => vendor.run(() => ({ answer: 42 }), call ?? {}))

for (let i = 1; i <= 3; i++) {
  const { statusCode, headers, body } = await app.inject({
    url: '/answer',
    headers: { authorization: 'ann' },
  })
  console.log(statusCode, JSON.parse(body).error?.code ?? body)
  console.log(`  ratelimit: ${headers.ratelimit}, retry-after: ${headers['retry-after'] ?? 'none'}`)
}
const { headers } = await app.inject({ url: '/answer', headers: { authorization: 'bob' } })
console.log(headers['ratelimit-policy'])
const ready = await app.inject('/health/ready')
console.log(ready.statusCode, ready.json().status)
console.log(app.spillway.snapshot())

await app.close()
await spillway.close()
