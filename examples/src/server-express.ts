import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { createSpillway } from 'spillway'
import { type ExpressRequest, spillwayExpress, spillwayExpressErrors } from 'spillway/express'

const spillway = createSpillway()
const vendor = spillway.guard('vendor', { timeout: { callMs: '30s' }, shed: { when: () => true } })

const app = express()
app.use(spillwayExpress({ limits: [{ per: 'ip', limit: 100, windowMs: '1m' }] }))
app.get('/answer', async (request: ExpressRequest, response) => {
  response.end(await vendor.run(() => '42', request.spillway))
})
// Last: a guard's refusal gets its status and Retry-After.
app.use(spillwayExpressErrors())

const server = app.listen(0)
await once(server, 'listening')
const { port } = server.address() as AddressInfo
const response = await fetch(`http://127.0.0.1:${port}/answer`)
console.log(response.status, await response.json())

server.closeAllConnections()
server.close()
await spillway.close()
