import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createSpillway, type GuardOptions, onEvent } from 'spillway'
import { createHops } from 'spillway/http'

const spillway = createSpillway()
const hops = createHops()
const servers: ReturnType<typeof createServer>[] = []

async function listen(handle: RequestListener): Promise<string> {
  const server = createServer(handle).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

// C is down, and records the headers of each request.
const seen: IncomingHttpHeaders[] = []
const c = await listen(({ headers }, response) => {
  seen.push(headers)
  response.writeHead(503).end('down')
})

/** A service in the middle: relays the response of the next service. */
function relay(fetchNext: typeof fetch, url: string): Promise<string> {
  return listen((request, response) => {
    // Reads the remaining time and the number of the attempt; reports to the caller whether a service has retried.
    hops.handle(request, response, async () => {
      const answer = await fetchNext(url)
      response.writeHead(answer.status).end(await answer.text())
    })
  })
}

/** Client → A → B → C. Each caller makes up to three attempts. Returns the function that the client calls. */
async function chain(name: string, options: GuardOptions) {
  const to = (tier: string) =>
    spillway.guard(`${name}: to ${tier}`, {
      timeout: { callMs: '30s' },
      retry: { attempts: 3, baseMs: 1, budget: 1 },
      ...options,
    })
  const b = await relay(to('C').fetch, c)
  const a = await relay(to('B').fetch, b)
  const fetchA = to('A').fetchFor({ timeoutMs: '5s' })
  return async () => {
    const answer = await fetchA(a)
    return `${answer.status} ${await answer.text()}`
  }
}

const without = await chain('without', {})
// It would be 27, if each guard did not have a budget for retries.
console.log(`without: ${await without()}, C saw ${seen.length}`)

seen.length = 0
onEvent((event) => {
  if (event.type === 'retry.stopped') console.log(`  ${event.name} stops: ${event.because}`)
})
const along = await chain('with', { fetch: { hops: true } })
console.log(`with: ${await along()}, C saw ${seen.length}`)
for (const headers of seen) {
  const leftMs = Number(headers['spillway-deadline-ms'])
  const left = leftMs > 0 && leftMs < 5_000 ? 'less than 5 s left' : 'no word on time'
  console.log(`  attempt ${headers['spillway-attempt']}, ${left}`)
}

await spillway.close()
for (const server of servers) server.close().closeAllConnections()
