import OpenAI from 'openai'
import { createSpillway, llmDefaults } from 'spillway'
import { redisStore } from 'spillway/redis'

const spillway = createSpillway({ store: redisStore({ url: process.env.REDIS_URL }) })
const limits = llmDefaults({ requestsPerMinute: 500, tokensPerMinute: 90_000 })
const client = new OpenAI(spillway.guard('openai', limits).sdk(OpenAI))

const messages = [{ role: 'user' as const, content: 'Why is the sky blue?' }]
const answer = await client.chat.completions.create({ model: 'gpt-4o', messages })
console.log(answer.choices[0]?.message.content)
await spillway.close()
