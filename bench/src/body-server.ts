/**
 * HTTP server for the stream benches. It runs in its own process, so that the measured process only reads and shares
 * neither memory nor threads with the sender. `GET /BYTES` responds with that number of bytes.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { BenchError } from './bench-error.js'
import { endProcess, spawnOwn } from './own-process.js'

export interface BodyServer {
  readonly url: string
  stop(): Promise<unknown>
}

const ITSELF = fileURLToPath(import.meta.url)

export async function startBodyServer(): Promise<BodyServer> {
  const child = spawnOwn(process.execPath, [ITSELF], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit').then(() => {
    throw new BenchError('the body server exited before it listened')
  })
  const [port] = await Promise.race([once(child.stdout!, 'data'), ended])
  return { url: `http://127.0.0.1:${String(port).trim()}`, stop: () => endProcess(child) }
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
    process.stdout.write(`${(server.address() as AddressInfo).port}\n`)
  })
}

if (process.argv[1] === ITSELF) serve()
