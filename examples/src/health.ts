import { createHealth, createSpillway } from 'spillway'
import { memoryStore } from 'spillway/shared'

// Two pods. In production each is a process of its own, and the store is Redis.
const store = memoryStore()
const podA = createSpillway({ store, pod: 'a' })
const podB = createSpillway({ store, pod: 'b' })
const options = {
  breaker: { consecutiveFailures: 50, openMs: '30s' },
  timeout: { callMs: '30s' },
  limits: [{ unit: 'requests', limit: 100, windowMs: '1m' }],
} as const
const vendorA = podA.guard('vendor', options)
podB.guard('vendor', options)

// Pod A has trouble with its vendor; pod B has not called it once.
for (let i = 0; i < 30; i++) {
  await vendorA.run(() => Promise.reject(new Error('503'))).catch(() => {})
}

const health = createHealth({ spillway: podB })
health.register('database', async () => ({ details: { connections: 3 } }))
health.register('search index', () => new Promise<never>(() => {}), {
  timeoutMs: '100ms', // hangs; the check fails after this time
  critical: false, // the service works without it
})

const { status, ready, checks, fleet } = await health.ready()
console.log({ status, ready })
for (const { name, status, details, error } of checks) {
  console.log(`${name}: ${status}`, details ?? error)
}
const vendor = fleet?.guards[0]
const [breaker] = vendor?.breakers ?? []
const [limit] = vendor?.limits ?? []
console.log({ store: fleet?.store, livePods: fleet?.livePods })
console.log({ state: breaker?.state, failures: breaker?.failures, openUntil: breaker?.openUntil })
console.log({ available: limit?.available, limit: limit?.limit })

health.drain()
const { ready: stillReady, reason } = await health.ready()
console.log({ stillReady, reason })

health.close()
await podA.close()
await podB.close()
