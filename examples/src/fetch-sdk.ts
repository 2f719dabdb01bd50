import Anthropic from '@anthropic-ai/sdk'
import { createMockVendor } from '@spillway/mock-vendor'
import OpenAI from 'openai'
import { createSpillway, llmDefaults, onEvent, refusalOf } from 'spillway'

// Replaces both vendors.
const vendor = createMockVendor({ knobs: { tokens: 4, tokenMs: 1 } })
const { url } = await vendor.start()

const spillway = createSpillway()
const options = {
  ...llmDefaults({ requestsPerMinute: 500, tokensPerMinute: 90_000 }),
  timeout: { callMs: '30s', firstByteMs: '10s', idleMs: '300ms' },
  retry: { attempts: 3, baseMs: 1, budget: 1 },
} as const
const gpt = spillway.guard('openai', options)
const claude = spillway.guard('anthropic', options)

const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'key', ...gpt.sdk(OpenAI) })
const anthropic = new Anthropic({ baseURL: url, apiKey: 'key', ...claude.sdk(Anthropic) })

const messages = [{ role: 'user' as const, content: 'Count!' }]

// The vendor is down until the guard schedules a retry.
vendor.set({ status: 503 })
onEvent(({ type }) => {
  if (type === 'retry.scheduled') vendor.reset()
})
const answer = await openai.chat.completions.create({ model: 'gpt', messages })
console.log(`OpenAI: ${answer.choices[0]?.message.content}, requests: ${vendor.counts.arrived}`)

// Streams: the call, and its slot, end with the last event.
const stream = await anthropic.messages.create({
  model: 'claude',
  max_tokens: 100,
  messages,
  stream: true,
})
const words: string[] = []
for await (const event of stream) {
  if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') {
    words.push(event.delta.text)
  }
}
console.log(`Anthropic: ${words.join('')}, slots in use: ${claude.snapshot().active}`)

// No data in the middle of an answer: the SDK's own timeout error.
vendor.set({ stallAfter: 2 })
const silent = await openai.chat.completions.create({ model: 'gpt', messages, stream: true })
try {
  for await (const chunk of silent) words.push(chunk.choices[0]?.delta.content ?? '')
} catch (error) {
  if (error instanceof OpenAI.APIConnectionTimeoutError) console.log(`OpenAI: ${error.message}`)
}

// Refusals arrive as the SDK's own errors.
await gpt.close()
const refused = await openai.models.list().catch((error: unknown) => error)
if (refused instanceof OpenAI.InternalServerError) {
  console.log(`${refused.constructor.name}: ${refused.status}, ${refusalOf(refused)?.code}`)
}

await spillway.close()
await vendor.close()
