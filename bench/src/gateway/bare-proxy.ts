/**
 * The peer: what a proxy costs that does nothing but forward, in a process of its own. Of the ways to
 * write it with node:http and undici this is the fastest we found: the request's body in one piece, and
 * a handler that writes into the response what comes from the vendor. `request()` of undici, which makes
 * a stream and a promise for each answer, takes longer.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type Dispatcher, Pool } from 'undici'
import type { Preparation } from '../measure.js'
import { isServerProcess, serve, startServerProcess } from './server-process.js'

/** Answers with its address. */
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

/** What is between two neighbours, and not passed on. */
const OF_A_CONNECTION = new Set(['host', 'connection', 'keep-alive', 'transfer-encoding'])

/** undici 7 has newer names for these, for which it would make an object of the headers. */
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
