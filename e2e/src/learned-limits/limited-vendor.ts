/** A vendor with one limit, counted in fixed or sliding windows. It counts what it accepts and refuses in each window. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface VendorRules {
  readonly windowMs: number
  readonly window: 'fixed' | 'sliding'
  readonly retryAfter: boolean
  /** Limits, each with the first window for which it applies. */
  readonly limits: readonly (readonly [fromWindow: number, limit: number])[]
}

export interface WindowCount {
  readonly limit: number
  accepted: number
  refused: number
}

const ANSWER_MS = 40
const ANSWER = JSON.stringify({
  id: 'chat-1',
  object: 'chat.completion',
  model: 'gpt-4o',
  choices: [{ index: 0, message: { role: 'assistant', content: 'yes' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
})

export async function startLimitedVendor({ windowMs, window, retryAfter, limits }: VendorRules) {
  const counts: WindowCount[] = []
  let accepted: number[] = []
  let startMs: number | undefined

  const countAt = (index: number): WindowCount => {
    while (counts.length <= index) {
      const limit = limits.findLast(([from]) => from <= counts.length)?.[1] ?? 1
      counts.push({ limit, accepted: 0, refused: 0 })
    }
    return counts[index] as WindowCount
  }
  /** Milliseconds until a request would be accepted; 0 if it is accepted now. */
  const take = (): number => {
    const nowMs = performance.now()
    startMs ??= nowMs
    const count = countAt(Math.floor((nowMs - startMs) / windowMs))
    const beginMs =
      window === 'fixed'
        ? startMs + Math.floor((nowMs - startMs) / windowMs) * windowMs
        : nowMs - windowMs
    accepted = accepted.filter((atMs) => atMs >= beginMs)
    if (accepted.length >= count.limit) {
      count.refused++
      return (window === 'fixed' ? beginMs : (accepted[0] as number)) + windowMs - nowMs
    }
    accepted.push(nowMs)
    count.accepted++
    return 0
  }

  const server = createServer((request, response) => {
    request.resume()
    const waitMs = take()
    const type = { 'content-type': 'application/json' }
    if (waitMs === 0) {
      setTimeout(() => response.writeHead(200, type).end(ANSWER), ANSWER_MS)
      return
    }
    const after = retryAfter ? { 'retry-after': String(Math.ceil(waitMs / 1_000)) } : {}
    response.writeHead(429, { ...type, ...after }).end('{"error":{"message":"slow down"}}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    counts,
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
