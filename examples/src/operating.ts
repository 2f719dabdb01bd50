import { createOperator, createSpillway, onEvent } from 'spillway'
import { memoryStore } from 'spillway/shared'

const store = memoryStore() // in a fleet: redisStore({ url }), the same for pods and operators
const openai = {
  breaker: { failureRate: 0.5, openMs: '30s' },
  timeout: { callMs: '30s' },
  limits: [{ unit: 'requests', limit: 500, windowMs: '1m' }],
} as const

// A pod.
const spillway = createSpillway({ store })
const guard = spillway.guard('openai', openai)
const call = (lane: string) => guard.run(() => 'answered', { lane }).catch((error) => error.message)
console.log(await call('gpt-4o'))

// An operator: in any process with access to the store and the options of the guard.
onEvent((event) => {
  if (event.type !== 'operator.acted') return
  console.log(`audit: ${event.by} ${event.action} ${event.name}: ${event.result}: ${event.message}`)
})
const operator = createOperator({ store, guards: { openai } })

await operator.perform({ action: 'isolate', guard: 'openai', forMs: '10m', by: 'ada' })
console.log((await call('gpt-4o')).replace(/[\d.]+ ms/, '… ms'))
console.log((await call('a new lane')).replace(/[\d.]+ ms/, '… ms'))
await operator.perform({ action: 'release', guard: 'openai', by: 'ada' })
console.log(await call('gpt-4o'))

const about = { guard: 'openai', unit: 'requests', by: 'ada' } as const
await operator.perform({ action: 'override', ...about, limit: 50, forMs: '10m' })
const { guards } = await operator.fleet()
console.log(guards[0]?.limits.map(({ id, limit }) => `${id}: ${limit}`))

await operator.perform({ action: 'restore', ...about, unit: 'request' }).catch((error) => {
  console.log(error.message)
})
await spillway.close()
