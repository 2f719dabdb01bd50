import { Registry } from 'prom-client'
import { createSpillway } from 'spillway'
import { exposeToPrometheus } from 'spillway/metrics'

const spillway = createSpillway()
const registry = new Registry()
exposeToPrometheus({ spillway, registry })

const vendor = spillway.guard('vendor', {
  timeout: { callMs: '30s' },
  userLimits: [{ per: 'user', limit: 2, windowMs: '1m' }],
  breaker: { failureRate: 0.5, openMs: '30s' },
  limits: [{ unit: 'requests', limit: 10, windowMs: '1m' }],
})
for (let i = 0; i < 4; i++) await vendor.run(() => 'ok', { user: 'ann' }).catch(() => {})

// A server would send this as the answer to a scrape.
const lines = (await registry.metrics()).split('\n')
for (const name of ['calls_total', 'refused_total', 'limit_headroom_ratio', 'pods']) {
  console.log(lines.filter((line) => line.startsWith(`spillway_${name}`)).join('\n'))
}

await spillway.close()
