import OpenAI from 'openai'
import { createSpillway, llmDefaults } from 'spillway'
import { redisStore } from 'spillway/redis'

const store = redisStore({ url: process.env.REDIS_URL })
const spillway = createSpillway({ store, expectedPods: 30 })
const limits = llmDefaults({ requestsPerMinute: 500, tokensPerMinute: 90_000 })
const client = new OpenAI(spillway.guard('openai', limits).sdk(OpenAI))

const answer = await client.responses.create({ model: 'gpt-4o', input: 'Why is the sky blue?' })
console.log(answer.output_text)
await spillway.close()
