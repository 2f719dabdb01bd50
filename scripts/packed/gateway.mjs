// Runs a gateway with a mock vendor and requests a chat completion and the dashboard.
import { createGateway, loadConfig } from '@spillway/gateway'

const log = { request() {}, event() {}, failure: (error) => console.error(error), close() {} }
const gateway = await createGateway(loadConfig({ file: 'spillway.yaml' }), { log })
const { port, adminPort } = await gateway.start()
const answer = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ model: 'gpt', messages: [{ role: 'user', content: 'Hello?' }] }),
})
const { choices } = await answer.json()
if (!choices[0].message.content) throw new Error('the mock vendor gave no answer')
const page = await (await fetch(`http://127.0.0.1:${adminPort}/dashboard/`)).text()
if (!page.includes('<script type="module">'))
  throw new Error('the page of the dashboard is missing')
await gateway.close()
