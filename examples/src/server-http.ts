import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { currentDeadline } from 'spillway'
import { spillwayHttp } from 'spillway/http'

const listener = spillwayHttp(
  { limits: [{ per: 'ip', limit: 100, windowMs: '1m' }], deadline: { timeoutMs: '10s' } },
  (_, response, call) => {
    const leftMs = currentDeadline()?.remainingMs() ?? 0
    response.end(`${call.ip} has ${leftMs <= 500 ? 'half a second' : 'longer'}`)
  },
)
const server = createServer(listener).listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo
const headers = { 'spillway-deadline-ms': '500' }
console.log(await (await fetch(`http://127.0.0.1:${port}`, { headers })).text())
console.log(await (await fetch(`http://127.0.0.1:${port}`)).text())

server.closeAllConnections()
server.close()
