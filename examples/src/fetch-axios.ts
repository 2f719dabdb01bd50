import { createMockVendor } from '@spillway/mock-vendor'
import axios, { isAxiosError } from 'axios'
import { createSpillway, refusalOf } from 'spillway'
import { spillwayAxios } from 'spillway/axios'

const mock = createMockVendor({ models: { gpt: {} } })
const { url } = await mock.start()

const spillway = createSpillway()
const vendor = spillway.guard('vendor', {
  timeout: { callMs: '30s' },
  retry: { attempts: 2, baseMs: 1, budget: 1 },
  breaker: { consecutiveFailures: 2, openMs: '10s' },
})
const client = axios.create({ baseURL: `${url}/v1`, ...spillwayAxios(axios, vendor) })

const chat = { model: 'gpt', messages: [{ role: 'user', content: 'Hello?' }] }
const ask = (id: string) =>
  client.post('/chat/completions', chat, {
    timeout: 20_000,
    spillway: { lane: chat.model, priority: 'high' },
    // A POST is sent again only with a key.
    headers: { 'idempotency-key': id },
  })

const { status } = await ask('one')
console.log(status, `requests: ${mock.counts.arrived}`)

mock.set({ status: 503 })
for (const id of ['two', 'three']) {
  const error = await ask(id).catch((each: unknown) => each)
  if (!isAxiosError(error)) throw error
  console.log(error.status, error.code, refusalOf(error)?.stage ?? 'answered by the vendor')
}
console.log(`requests: ${mock.counts.arrived}`)

await spillway.close()
await mock.close()
