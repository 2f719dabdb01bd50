import { createSpillway } from 'spillway'

// For a whole fleet: createSpillway({ store: redisStore({ url }) }), from 'spillway/redis'.
const spillway = createSpillway()

// A stage that is left out is off.
const openai = spillway.guard('openai', {
  shed: { maxQueue: 400 },
  userLimits: [{ per: 'user', limit: 60, windowMs: '1m' }],
  queue: { size: 450, timeoutMs: '5s' },
  breaker: { failureRate: 0.5, openMs: '30s' },
  limits: [
    { unit: 'requests', limit: 500, windowMs: '1m' },
    { unit: 'tokens', limit: 90_000, windowMs: '1m' },
  ],
  pace: { limit: 20, windowMs: '1s' },
  concurrency: { limit: 50 },
  timeout: { callMs: '30s' },
  retry: { attempts: 3, baseMs: 20, budget: 0.2 },
})

const answer = await openai.run(
  async ({ signal, attempt, settle }) => {
    signal.throwIfAborted()
    // A vendor that fails the first time.
    if (attempt === 1) throw new Error('503 from the vendor')
    settle({ tokens: 640 })
    return `an answer at attempt ${attempt}`
  },
  { user: 'ann', priority: 'high', cost: { tokens: 900 }, timeoutMs: '20s' },
)
console.log(answer)
const { calls, attempts, outcomes } = openai.snapshot()
console.log({ calls, attempts, outcomes })

await spillway.close()
