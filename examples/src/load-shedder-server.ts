import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { shedRequest } from 'spillway/http'
import { createLoadShedder } from 'spillway/local'

const shedder = createLoadShedder({
  maxInFlight: 2,
  memory: 0.9,
  loopUtilization: 0.95,
  loopDelayMs: '100ms',
})

const server = createServer((request, response) => {
  // Called first: refused requests are answered here.
  if (shedRequest(shedder, request, response)) return
  if (request.url === '/health/live') response.end('alive')
  else setTimeout(() => response.end('done'), 200)
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

const ask = async (path: string) => {
  const response = await fetch(url + path)
  await response.text()
  return `${path} ${response.status}`
}
const slow = [ask('/a'), ask('/b')]
await new Promise((resolve) => setTimeout(resolve, 50))
console.log(await ask('/c'), 'while two are inside')
console.log(await ask('/health/live'), 'all the same')
console.log(await Promise.all(slow))

server.close()
server.closeAllConnections()
shedder.close()
