/** The service that all packages call. It records the arrival time and the pod of each request. */
import { once } from 'node:events'
import { createServer } from 'node:http'

/** `answer(request, response)` replaces the usual `200 ok`. Requests for `/warm-up` are not recorded. */
export async function startVendor(answer = (_request, response) => response.end('ok')) {
  const arrivals = []
  const server = createServer((request, response) => {
    request.resume()
    if (request.url === '/warm-up') return response.end()
    arrivals.push({ atMs: performance.now(), pod: request.headers['x-pod'] })
    answer(request, response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    arrivals,
    stop() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Most arrivals in any window of this length. */
export function worstWindow(arrivals, windowMs) {
  const times = arrivals.map(({ atMs }) => atMs).sort((a, b) => a - b)
  let worst = 0
  let first = 0
  for (let last = 0; last < times.length; last++) {
    while (times[last] - times[first] >= windowMs) first++
    worst = Math.max(worst, last - first + 1)
  }
  return worst
}
