import { createUserLimits, memoryStore } from 'spillway/shared'

const limits = createUserLimits({
  store: memoryStore(), // in production: redisStore({ url }) from 'spillway/redis'
  levels: [
    { per: 'global', limit: 1_000_000, windowMs: '1m' },
    { per: 'tier', limit: { free: 100, pro: 1_000, enterprise: 'unlimited' }, windowMs: '1m' },
    { per: 'user', limit: 60, windowMs: '1m' },
    { per: 'ip', limit: 100, windowMs: '1m' },
    { per: 'endpoint', limit: { '/api/search': 20 }, windowMs: '1m' },
    { per: 'endpoint', limit: { '/api/export': 5 }, windowMs: '5m' },
  ],
})

const request = { user: 'ann', tier: 'free', ip: '10.0.0.1', endpoint: '/api/export' }
for (let i = 1; i <= 6; i++) {
  const { allowed, level, remaining, retryAfterMs } = await limits.check(request)
  const wait = Math.round(retryAfterMs / 1_000)
  console.log(`${i}: ${allowed ? 'ok' : `429, again in ${wait} s`} (${level}: ${remaining} left)`)
}

// The refusal above cost nothing on the other levels.
const { level, remaining } = await limits.check({ user: 'ann' })
console.log(`${level}: ${remaining} left`)
