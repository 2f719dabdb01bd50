import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createDashboard } from '@spillway/dashboard'
import { createSpillway } from 'spillway'

const spillway = createSpillway({ pod: 'shop' })
const vendor = spillway.guard('vendor', {
  timeout: { callMs: '30s' },
  breaker: { consecutiveFailures: 3, openMs: '30s' },
  concurrency: { limit: 10 },
})

// On a port for operators only. Reading and acting need the token; the page prompts for it.
const token = 'for-operators-only'
const dashboard = createDashboard({ spillway, token, path: '/dashboard' })
const server = createServer(dashboard).listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo
const url = `http://127.0.0.1:${port}/dashboard/`

const page = await fetch(url)
console.log(page.status, page.headers.get('content-type'))

// Sends an action, as a button on the page does.
async function act(body: object, headers: Record<string, string>) {
  const type = { 'content-type': 'application/json' }
  const init = { method: 'POST', headers: { ...type, ...headers }, body: JSON.stringify(body) }
  const response = await fetch(`${url}act`, init)
  console.log(response.status, await response.json())
}
const isolate = { act: 'isolate', guard: 'vendor', forMs: 60_000 }
await act(isolate, {})
await act(isolate, { authorization: `Bearer ${token}` })
await vendor.run(() => 'an answer').catch(({ code }) => console.log(code))

dashboard.close()
server.closeAllConnections()
server.close()
await spillway.close()
