/**
 * The peer: a proxy that only forwards, in its own process. This is the fastest variant we found with node:http and
 * undici: it reads the request body as a whole, and an undici handler writes the vendor's response to the client.
 * `request()` of undici is slower, because it creates a stream and a promise per response.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type Dispatcher, Pool } from 'undici'
import type { Preparation } from '../measure.js'
import { isServerProcess, serve, startServerProcess } from './server-process.js'

/** Returns the address of the proxy. */
export async function startBareProxy(vendor: string, preparation: Preparation): Promise<string> {
  const { url } = await startServerProcess(import.meta.url, [vendor], preparation)
  return url
}

function beProxy(vendor: string): void {
  const pool = new Pool(vendor)
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
      pool.dispatch(outgoing(request, body), writeInto(response))
    })
  })
  serve(server)
}

function outgoing(
  { url, method, rawHeaders }: IncomingMessage,
  body: Buffer,
): Dispatcher.DispatchOptions {
  const headers: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (!OF_A_CONNECTION.has(name.toLowerCase())) headers.push(name, rawHeaders[i + 1]!)
  }
  return { path: url!, method: method as Dispatcher.HttpMethod, headers, body }
}

/** Hop-by-hop headers, which are not forwarded. */
const OF_A_CONNECTION = new Set(['host', 'connection', 'keep-alive', 'transfer-encoding'])

/** undici 7 has newer names for these methods, but with them it builds an object of the headers. */
function writeInto(response: ServerResponse): Dispatcher.DispatchHandler {
  let resume: () => void
  return {
    onConnect(abort) {
      response.on('close', () => {
        if (!response.writableFinished) abort(new Error('the caller has gone'))
      })
    },
    onHeaders(status, rawHeaders, goOn) {
      resume = goOn
      const headers: string[] = []
      for (let i = 0; i < rawHeaders.length; i += 2) {
        const name = rawHeaders[i]!.toString('latin1')
        if (OF_A_CONNECTION.has(name.toLowerCase())) continue
        headers.push(name, rawHeaders[i + 1]!.toString('latin1'))
      }
      response.writeHead(status, headers)
      return true
    },
    onData(chunk) {
      if (response.write(chunk)) return true
      response.once('drain', resume)
      return false
    },
    onComplete() {
      response.end()
    },
    onError() {
      if (!response.headersSent) response.writeHead(502)
      response.end()
    },
  }
}

if (isServerProcess(import.meta.url)) beProxy(process.argv[2]!)
