import { setTimeout as sleep } from 'node:timers/promises'
import { createMockVendor, type MockKnobs } from '@spillway/mock-vendor'
import { createSpillway, onEvent } from 'spillway'

const vendor = createMockVendor({ knobs: { tokens: 20, tokenMs: 1 } })
const { url } = await vendor.start()

const spillway = createSpillway()
const openai = spillway.guard('openai', {
  concurrency: { limit: 10 },
  breaker: { failureRate: 0.5, minimumCalls: 10, openMs: '30s' },
  timeout: { callMs: '2s', firstByteMs: '1s', idleMs: '400ms', unreadMs: '400ms' },
})
onEvent((event) => {
  if (event.type === 'stream.ended') console.log(`  ended: ${event.how}`)
})

async function ask(title: string, mock: MockKnobs, use: (answer: Response) => Promise<string>) {
  console.log(title)
  const answer = await openai.fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'x-mock': JSON.stringify(mock) },
    body: JSON.stringify({ model: 'gpt', stream: true, messages: [] }),
    signal: leaving.signal,
  })
  console.log(`  status ${answer.status}, slots in use: ${openai.snapshot().active}`)
  const what = await use(answer).catch((error: Error) => `${error.name}: ${error.message}`)
  console.log(`  ${what}, slots in use: ${openai.snapshot().active}`)
}

const readAll = async (answer: Response) =>
  `read, ends with ${(await answer.text()).trim().slice(-6)}`
const leaving = new AbortController()

await ask('all is well', {}, readAll)
await ask('the connection breaks', { cutAfter: 5 }, readAll)
await ask('the vendor falls silent', { stallAfter: 5 }, readAll)
await ask('the reader has enough', { tokenMs: 50 }, async ({ body }) => {
  for await (const _chunk of body ?? []) break
  return 'read one piece'
})
await ask('the answer is not read', { tokenMs: 50 }, () => sleep(600, 'not read'))
await ask('the caller aborts', { tokenMs: 50 }, async (answer) => {
  setTimeout(() => leaving.abort(), 100)
  return answer.text()
})

await vendor.waitForIdle()
console.log(vendor.calls.map(({ end }) => end).join(', '))
const { outcomes, bodies } = openai.snapshot()
console.log(outcomes)
console.log(bodies)

await spillway.close()
await vendor.close()
