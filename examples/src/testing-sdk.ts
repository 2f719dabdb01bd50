import assert from 'node:assert/strict'
import { createMockVendor } from '@spillway/mock-vendor'
import OpenAI from 'openai'
import { createSpillway, type GuardOptions, llmDefaults, refusalOf } from 'spillway'

// The code under test. It gets the SDK's client and does not depend on the guard.
async function summarize(client: OpenAI, text: string): Promise<string> {
  try {
    const input = `Summarize: ${text}`
    const answer = await client.responses.create({ model: 'gpt-4o', input, max_output_tokens: 50 })
    return answer.output_text
  } catch (error) {
    if (refusalOf(error)?.code === 'VENDOR_LIMITED') return 'too many requests, try again later'
    if (error instanceof OpenAI.APIError) return 'no summary today'
    throw error
  }
}

// One test: a vendor on this machine, and a guard with the store in memory, as production has it with Redis.
async function test(
  name: string,
  options: GuardOptions,
  run: (client: OpenAI, vendor: ReturnType<typeof createMockVendor>) => Promise<void>,
) {
  const vendor = createMockVendor({ knobs: { tokens: 4 } })
  const { url } = await vendor.start()
  const spillway = createSpillway()
  const { fetch, maxRetries } = spillway.guard('openai', options).sdk(OpenAI)
  await run(new OpenAI({ baseURL: `${url}/v1`, apiKey: 'key', fetch, maxRetries }), vendor)
  await spillway.close()
  await vendor.close()
  console.log(`passed: ${name}`)
}

await test('an answer', llmDefaults({ requestsPerMinute: 500 }), async (client, vendor) => {
  assert.match(await summarize(client, 'a long text'), /\w+/)
  assert.equal(vendor.counts.arrived, 1)
})

await test(
  'the limit is used up',
  llmDefaults({ requestsPerMinute: 1 }),
  async (client, vendor) => {
    await summarize(client, 'a long text')
    assert.equal(await summarize(client, 'another'), 'too many requests, try again later')
    // The guard refused the second call, so the vendor saw only one.
    assert.equal(vendor.counts.arrived, 1)
  },
)

const quickRetries = {
  ...llmDefaults({ requestsPerMinute: 500 }),
  retry: { attempts: 2, baseMs: 1 },
}
await test('the vendor is down', quickRetries, async (client, vendor) => {
  vendor.set({ status: 503 })
  assert.equal(await summarize(client, 'a long text'), 'no summary today')
  assert.equal(vendor.counts.arrived, 2)
})
