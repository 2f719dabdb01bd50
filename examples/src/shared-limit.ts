import OpenAI from 'openai'
import { createSpillway, llmDefaults, refusalOf } from 'spillway'
import { redisStore } from 'spillway/redis'

const store = redisStore({ url: process.env.REDIS_URL })
const spillway = createSpillway({ store, expectedPods: 5 })
const limits = llmDefaults({ requestsPerMinute: 6, tokensPerMinute: 90_000 })
const client = new OpenAI(spillway.guard('openai', limits).sdk(OpenAI))

for (const input of ['Why is the sky blue?', 'Why is the sea salty?']) {
  try {
    await client.responses.create({ model: 'gpt-4o-mini', input })
    console.log('answered')
  } catch (error) {
    const refusal = refusalOf(error)
    if (refusal === undefined) throw error // from the vendor or the network
    console.log(`refused: ${refusal.code}, status ${refusal.status}`)
  }
}
await spillway.close()
