import Anthropic from '@anthropic-ai/sdk'
import { createMockVendor } from '@spillway/mock-vendor'
import OpenAI from 'openai'
import { createSpillway, onEvent } from 'spillway'

// Takes the place of both vendors.
const vendor = createMockVendor({ knobs: { tokens: 4, tokenMs: 1 } })
const { url } = await vendor.start()

const spillway = createSpillway()
const shared = {
  concurrency: { limit: 50 },
  breaker: { failureRate: 0.5, openMs: '30s' },
  timeout: { callMs: '30s', firstByteMs: '10s', idleMs: '300ms' },
  retry: { attempts: 3, baseMs: 1, budget: 1 },
} as const

// The SDKs' own retries are off: they would multiply with the guard's. Requests get a key, so that
// the guard may send a POST twice. Refusals become responses, which an SDK knows how to read. And it is
// told whose errors to use for an answer that it breaks off.
const fetch = { idempotencyHeader: 'idempotency-key', respond: true } as const
const gpt = spillway.guard('openai', { ...shared, fetch: { ...fetch, sdk: OpenAI } })
const claude = spillway.guard('anthropic', { ...shared, fetch: { ...fetch, sdk: Anthropic } })

const openai = new OpenAI({
  baseURL: `${url}/v1`,
  apiKey: 'key',
  fetch: gpt.fetchFor({ lane: 'gpt' }),
  maxRetries: 0,
})
const anthropic = new Anthropic({
  baseURL: url,
  apiKey: 'key',
  fetch: claude.fetch,
  maxRetries: 0,
})

const messages = [{ role: 'user' as const, content: 'Count!' }]

// Down until somebody is about to try again.
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

// Silence in the middle of an answer: a timeout, as an application knows it from the SDK.
vendor.set({ stallAfter: 2 })
const silent = await openai.chat.completions.create({ model: 'gpt', messages, stream: true })
try {
  for await (const chunk of silent) words.push(chunk.choices[0]?.delta.content ?? '')
} catch (error) {
  if (error instanceof OpenAI.APIConnectionTimeoutError) console.log(`OpenAI: ${error.message}`)
}

// Refusals arrive as the errors an application already knows.
await gpt.close()
const refused = await openai.models.list().catch((error: unknown) => error)
if (refused instanceof OpenAI.InternalServerError) {
  console.log(`${refused.constructor.name}: ${refused.status}, ${refused.code}`)
}

await spillway.close()
await vendor.close()
