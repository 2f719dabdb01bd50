/**
 * A vendor that notes when calls reach it, and answers a moment later. A call is the time at which it was
 * written, by the clock all processes of a machine share: on loopback that is when it arrived, and a
 * vendor that does not get to run for a moment does not take it for later.
 */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

const SERVICE_MS = 5
const CALL_BYTES = 8

/** A call made now, on the wire. */
export function callNow(): Buffer {
  const call = Buffer.alloc(CALL_BYTES)
  call.writeDoubleLE(Number(process.hrtime.bigint()) / 1e6)
  return call
}

export class CountingVendor {
  readonly arrivals: number[] = []
  readonly #sockets = new Set<Socket>()
  readonly #server = createServer((socket) => {
    this.#sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => {})
    socket.on('data', (data) => {
      for (let at = 0; at < data.length; at += CALL_BYTES) {
        this.#note(data.readDoubleLE(at))
        setTimeout(() => socket.write('.'), SERVICE_MS)
      }
    })
  })

  /** In the order in which they arrived, whichever socket was read first. */
  #note(atMs: number): void {
    let index = this.arrivals.length
    while (index > 0 && (this.arrivals[index - 1] as number) > atMs) index--
    this.arrivals.splice(index, 0, atMs)
  }

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
