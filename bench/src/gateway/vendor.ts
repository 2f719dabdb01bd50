/**
 * The vendor behind all gateways: as fast as node:http allows, in its own process. It counts the requests, which
 * shows that no gateway responds without forwarding.
 */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { Preparation } from '../measure.js'
import { ANSWER, ANSWER_HEADERS, EVENTS, STREAMED } from './chat.js'
import { isServerProcess, serve, startServerProcess } from './server-process.js'

export interface Vendor {
  readonly url: string
  /** Number of requests the vendor has received. */
  count(): Promise<number>
}

/** `latencyMs`: time until the vendor responds. */
export async function startVendor(preparation: Preparation, latencyMs = 0): Promise<Vendor> {
  const { child, url } = await startServerProcess(import.meta.url, [`${latencyMs}`], preparation)
  return {
    url,
    async count() {
      const answered = once(child, 'message')
      child.send('count')
      return (await answered)[0]
    },
  }
}

function beVendor(latencyMs: number): void {
  const body = Buffer.from(ANSWER)
  const headers = flat({
    ...ANSWER_HEADERS,
    'content-type': 'application/json',
    'content-length': `${body.length}`,
  })
  const streamHeaders = flat({ ...ANSWER_HEADERS, 'content-type': 'text/event-stream' })
  let requests = 0
  const server = createServer((request, response) => {
    let streamed = false
    request.on('data', (chunk: Buffer) => {
      streamed ||= chunk.includes(STREAMED)
    })
    request.on('end', () => {
      requests++
      const answer = () => {
        response.writeHead(200, streamed ? streamHeaders : headers)
        if (streamed) sendEvents(response)
        else response.end(body)
      }
      if (latencyMs > 0) setTimeout(answer, latencyMs)
      else answer()
    })
  })
  process.on('message', () => process.send?.(requests))
  serve(server)
}

/** Writes one chunk per turn of the event loop, so that each chunk is sent separately. */
function sendEvents(response: ServerResponse, next = 0): void {
  if (next === EVENTS.length) return void response.end()
  response.write(EVENTS[next]!)
  setImmediate(sendEvents, response, next + 1)
}

/** A flat array of raw headers, which Node writes without building an object. */
function flat(headers: Record<string, string>): string[] {
  return Object.entries(headers).flat()
}

if (isServerProcess(import.meta.url)) beVendor(Number(process.argv[2]))
