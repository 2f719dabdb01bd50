import { createMockVendor } from '@spillway/mock-vendor'
import { createSpillway } from 'spillway'

const vendor = createMockVendor({ knobs: { tokens: 30 } })
const { url } = await vendor.start()

const spillway = createSpillway()
const openai = spillway.guard('openai', {
  timeout: { callMs: '30s' },
  limits: [{ unit: 'tokens', limit: 1_000, windowMs: '1h' }],
  fetch: {
    // The highest cost of a request, reserved until the actual cost is known: the limit of its answer.
    describe: ({ headers }) => ({ cost: { tokens: Number(headers.get('x-max-tokens')) } }),
  },
})

async function ask(maxTokens: number, includeUsage: boolean) {
  const request = { model: 'gpt', stream: true, max_tokens: maxTokens, messages: [] }
  const body = includeUsage ? { ...request, stream_options: { include_usage: true } } : request
  try {
    const answer = await openai.fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'x-max-tokens': String(maxTokens) },
      body: JSON.stringify(body),
    })
    await answer.text()
    console.log(`${maxTokens} tokens booked: answered`)
  } catch (error) {
    console.log(`${maxTokens} tokens booked: ${(error as { code?: string }).code}`)
  }
}

// Each reserves 600 of 1,000 and uses 30. The rest is free again when the answer has ended.
for (let i = 0; i < 3; i++) await ask(600, true)
// Without usage in the answer the actual cost is unknown, so the whole reservation counts.
await ask(600, false)
await ask(600, false)

await spillway.close()
await vendor.close()
