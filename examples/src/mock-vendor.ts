import { createMockVendor, type MockKnobs } from '@spillway/mock-vendor'

// A vendor with limits, on a port of this machine. The SDKs of OpenAI and Anthropic accept it as
// theirs: new OpenAI({ baseURL: `${url}/v1` }), new Anthropic({ baseURL: url }).
const vendor = createMockVendor({
  limits: [{ limit: 3, windowMs: '1m' }],
  knobs: { tokens: 5, tokenMs: 10 },
  models: { flaky: { cutAfter: 3 } },
})
const { url } = await vendor.start()

function ask(model: string, mock: MockKnobs = {}, signal?: AbortSignal): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer key', 'x-mock': JSON.stringify(mock) },
    body: JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'Hello?' }] }),
    signal: signal ?? null,
  })
}

// Well-behaved.
const answer = await ask('gpt')
const events = (await answer.text()).match(/data:/g)
console.log(`${answer.status}, ${events?.length} events`)

// One model loses its connections, one request fails, and one client disconnects.
const cut = await ask('flaky').then((response) => response.text().catch(() => 'a broken stream'))
console.log(cut)
console.log((await ask('gpt', { status: 529 })).status)
const leave = new AbortController()
const stalled = await ask('gpt', { stallAfter: 2 }, leave.signal)
setTimeout(() => leave.abort(), 500)
await stalled.text().catch((error) => console.log(error.name))

// The fourth one of its model within a minute.
const refused = await ask('gpt')
console.log(refused.status, refused.headers.get('x-ratelimit-remaining-requests'))

await vendor.waitForIdle()
for (const { model, status, end, tokensSent } of vendor.calls) {
  console.log(`${model}: ${status}, ${end}, ${tokensSent} tokens`)
}
console.log(`at most ${vendor.mostInAnyWindow('1m', { model: 'gpt' })} for gpt in any minute`)
await vendor.close()
