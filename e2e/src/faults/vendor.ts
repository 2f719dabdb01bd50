/** A vendor that notes when calls reach it, and answers a moment later. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

const SERVICE_MS = 5

export class CountingVendor {
  readonly arrivals: number[] = []
  readonly #sockets = new Set<Socket>()
  readonly #server = createServer((socket) => {
    this.#sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => {})
    socket.on('data', (data) => {
      const atMs = performance.now()
      for (let call = 0; call < data.length; call++) {
        this.arrivals.push(atMs)
        setTimeout(() => socket.write('.'), SERVICE_MS)
      }
    })
  })

  async start(): Promise<number> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return (this.#server.address() as AddressInfo).port
  }

  /** The most in any window of this length, wherever it is laid. */
  worst(windowMs: number): number {
    let most = 0
    let start = 0
    for (const [index, atMs] of this.arrivals.entries()) {
      while (atMs - (this.arrivals[start] as number) >= windowMs) start++
      most = Math.max(most, index - start + 1)
    }
    return most
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }
}
