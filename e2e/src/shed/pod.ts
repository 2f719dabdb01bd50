/**
 * A pod that works a few milliseconds for each request, after a short wait for I/O. Runs in its own process; with
 * `protected` it has a load shedder.
 */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { shedRequest } from 'spillway/http'
import { createLoadShedder } from 'spillway/local'

const WAIT_MS = 20
const WORK_MS = 4

const shedder =
  process.argv[2] === 'protected'
    ? createLoadShedder({
        sampleMs: 50,
        maxInFlight: 12,
        loopUtilization: 0.95,
        loopDelayMs: 50,
        priorities: { low: 2, normal: 4, high: 8 },
      })
    : undefined

const server = createServer((request, response) => {
  const user = request.headers['x-user']
  const known = typeof user === 'string' ? { user } : {}
  if (shedder !== undefined && shedRequest(shedder, request, response, known)) return
  if (request.url === '/health/live') response.end('ok')
  else void serve(response)
})

async function serve(response: ServerResponse): Promise<void> {
  await sleep(WAIT_MS)
  work()
  response.end('done')
}

function work(): void {
  const endMs = performance.now() + WORK_MS
  while (performance.now() < endMs);
}

server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.on('message', () => process.send?.(process.memoryUsage.rss()))
process.once('disconnect', () => process.exit())
