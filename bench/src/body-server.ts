/**
 * A server for the benches of streams, on a thread of its own: the event loop that is measured should
 * have nothing to do but to read. `GET /BYTES` answers with so many bytes.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'

export interface BodyServer {
  readonly url: string
  stop(): Promise<unknown>
}

export function startBodyServer(): Promise<BodyServer> {
  const worker = new Worker(new URL(import.meta.url))
  return new Promise((resolve, reject) => {
    worker.once('error', reject)
    worker.once('message', (port: number) => {
      resolve({ url: `http://127.0.0.1:${port}`, stop: () => worker.terminate() })
    })
  })
}

function serve(): void {
  const bodies = new Map<string, Buffer>()
  const server = createServer(({ url = '/0' }, response) => {
    let body = bodies.get(url)
    if (body === undefined) {
      body = Buffer.alloc(Number(url.slice(1)), 'spillway ')
      bodies.set(url, body)
    }
    response.setHeader('content-type', 'text/event-stream')
    response.setHeader('content-length', body.length)
    response.end(body)
  })
  server.listen(0, '127.0.0.1', () => {
    parentPort?.postMessage((server.address() as AddressInfo).port)
  })
}

if (!isMainThread) serve()
