/**
 * A vendor that records when calls reach it and answers shortly after. A call carries the time at which it was sent,
 * by the system clock that all processes share. So a vendor that gets no CPU time does not record calls too late.
 */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

const SERVICE_MS = 5
const CALL_BYTES = 8

/** Writes a call with the current time to the socket. */
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

  /** Times in order of arrival, independent of the order in which sockets were read. */
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

  /** Largest number of calls in any window of this length. */
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
