/** TCP proxy between a pod and its store, so that the network can fail for one pod or for all. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export class PodNetwork {
  /** Port to which new connections are forwarded. */
  target: number
  /** Added latency of a round trip. */
  latencyMs = 0
  readonly #server = createServer((socket) => this.#accept(socket))
  readonly #sockets = new Set<Socket>()
  /** Cuts the connection after it has forwarded the next command. */
  #cutNext = false
  #frozen = false

  constructor(target: number) {
    this.target = target
  }

  async start(): Promise<number> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return (this.#server.address() as AddressInfo).port
  }

  /** A partition: connections stay open, and data arrives after the partition has ended. */
  freeze(): void {
    this.#frozen = true
    for (const socket of this.#sockets) socket.pause()
  }

  thaw(): void {
    this.#frozen = false
    for (const socket of this.#sockets) socket.resume()
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  cutMidCommand(): void {
    this.#cutNext = true
  }

  async stop(): Promise<void> {
    this.cut()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #accept(near: Socket): void {
    const far = connect({ port: this.target, host: '127.0.0.1', noDelay: true })
    near.setNoDelay(true)
    this.#pipe(near, far, true)
    this.#pipe(far, near, false)
  }

  #pipe(from: Socket, to: Socket, command: boolean): void {
    this.#sockets.add(from)
    from.on('error', () => {})
    from.on('close', () => {
      this.#sockets.delete(from)
      to.destroy()
    })
    // Data keeps its order when the latency changes.
    const delayed: Buffer[] = []
    const pass = () => {
      const data = delayed.shift() as Buffer
      if (!to.destroyed) to.write(data)
      if (!command || !this.#cutNext) return
      this.#cutNext = false
      from.destroy()
    }
    from.on('data', (data) => {
      delayed.push(data)
      if (this.latencyMs === 0 && delayed.length === 1) pass()
      else setTimeout(pass, this.latencyMs / 2)
    })
    if (this.#frozen) from.pause()
  }
}
