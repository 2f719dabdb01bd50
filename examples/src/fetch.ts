import { createMockVendor, type MockKnobs } from '@spillway/mock-vendor'
import { createSpillway, onEvent, SpillwayError } from 'spillway'

const vendor = createMockVendor({ models: { gpt: {} } })
const { url } = await vendor.start()

const spillway = createSpillway()
const openai = spillway.guard('openai', {
  concurrency: { limit: 10 },
  breaker: { consecutiveFailures: 3, openMs: '10s' },
  timeout: { callMs: '2s', firstByteMs: '1s', idleMs: '500ms' },
  retry: { attempts: 2, baseMs: 1, budget: 1 },
})
onEvent((event) => {
  if (event.type === 'retry.stopped') console.log(`  no retry: ${event.because}`)
})

function ask(mock: MockKnobs, headers: Record<string, string> = {}) {
  return {
    method: 'POST',
    headers: { ...headers, 'x-mock': JSON.stringify(mock) },
    body: JSON.stringify({ model: 'gpt', messages: [{ role: 'user', content: 'Hello?' }] }),
  }
}

async function show(title: string, path: string, init?: RequestInit) {
  console.log(title)
  const before = vendor.counts.arrived
  try {
    const response = await openai.fetch(`${url}${path}`, init)
    const bytes = (await response.text()).length
    console.log(`  status ${response.status}, ${bytes > 0 ? 'a body' : 'no body'}`)
  } catch (error) {
    if (!(error instanceof SpillwayError)) throw error
    console.log(`  ${error.code} at stage ${error.stage}`)
  }
  console.log(`  the vendor saw ${vendor.counts.arrived - before}`)
}

const chat = '/v1/chat/completions'
await show('GET', '/v1/models')
await show('POST', chat, ask({ tokens: 3 }))
await show('POST, the vendor is down', chat, ask({ status: 503 }))
await show('the same with a key', chat, ask({ status: 503 }, { 'idempotency-key': 'order-17' }))
await show('after three failures in a row', '/v1/models')

await spillway.close()
await vendor.close()
