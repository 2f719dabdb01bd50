import Anthropic from '@anthropic-ai/sdk'
import { createMockVendor } from '@spillway/mock-vendor'
import { createSpillway, llmDefaults } from 'spillway'

// In production: no mock vendor, no baseURL, and createSpillway({ store: redisStore({ url }) }).
const vendor = createMockVendor({ knobs: { tokens: 4 } })
const { url } = await vendor.start()
const spillway = createSpillway()

// Anthropic limits input and output tokens separately, for each model.
const guard = spillway.guard(
  'anthropic',
  llmDefaults({
    requestsPerMinute: 50,
    inputTokensPerMinute: 30_000,
    outputTokensPerMinute: 8_000,
  }),
)
const client = new Anthropic({ baseURL: url, apiKey: 'key', ...guard.sdk(Anthropic) })

const message = await client.messages.create({
  model: 'claude-sonnet-4-5',
  max_tokens: 100,
  messages: [{ role: 'user', content: 'Count!' }],
})
for (const block of message.content) {
  if (block.type === 'text') console.log(block.text)
}
console.log(guard.snapshot().outcomes)

await spillway.close()
await vendor.close()
