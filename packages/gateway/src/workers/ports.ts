/** The data port and the admin port of a gateway with workers. Workers serve the connections that they accept. */
import type { Socket } from 'node:net'
import type { Clock } from 'spillway'
import type { Timer } from 'spillway/internal'
import { linger } from '../response/linger.js'
import { HandOver } from './hand-over.js'
import type { PortName } from './protocol.js'
import type { SupervisedWorker } from './supervised-worker.js'

/** A port that was opened. */
export interface Listener {
  readonly port: number
  close(): void
}

export interface WorkerPortsOptions {
  /** Opens a port. Its connections are not read here. */
  listen(port: PortName, onConnection: (socket: Socket) => void): Promise<Listener>
  /** Workers that take connections, in the order of their slots. */
  workers(): readonly SupervisedWorker[]
  isDraining(): boolean
  readonly clock: Clock
}

const UNAVAILABLE = '{"status":"starting"}'
/** Connections that wait because no worker could take them. */
const MAX_HELD = 1_000
/** Workers that had no free file descriptor are tried again after this time. */
const OFFER_AGAIN_MS = 1_000
/** More than one, because the connections of a dashboard arrive together and should reach the same worker. */
const MAX_ADMIN_OFFERED = 2

export class WorkerPorts {
  readonly #options: WorkerPortsOptions
  readonly #toWorkers: Readonly<Record<PortName, HandOver>>
  readonly #listeners: Partial<Record<PortName, Listener>> = {}
  /** Connections to the data port that no worker has taken. */
  readonly #held: Socket[] = []
  #offerAgain: Timer | undefined
  #turn = 0

  constructor(options: WorkerPortsOptions) {
    const { workers, isDraining: isLast, clock } = options
    this.#options = options
    this.#toWorkers = {
      // Always the first worker, so that later connections of a dashboard reach the same one.
      admin: new HandOver({
        port: 'admin',
        maxOffered: MAX_ADMIN_OFFERED,
        isLast,
        workers,
        onRefused: (socket) => answerUnavailable(socket, clock),
      }),
      data: new HandOver({
        port: 'data',
        maxOffered: 1,
        isLast,
        workers: () => this.#inTurn(workers()),
        onRefused: (socket) => this.#hold(socket),
      }),
    }
  }

  /** Answers with the port; 0 for a Unix socket. */
  async open(name: PortName): Promise<number> {
    const handOver = this.#toWorkers[name]
    const listener = await this.#options.listen(name, (socket) => {
      // It is not read, but writing an answer may fail.
      socket.on('error', () => {})
      handOver.give(socket)
    })
    this.#listeners[name] = listener
    return listener.port
  }

  close(name: PortName): void {
    this.#listeners[name]?.close()
  }

  /** A worker is ready: it takes the connections that wait. */
  serveWaiting(): void {
    this.#offerAgain?.cancel()
    this.#offerAgain = undefined
    for (const socket of this.#held.splice(0)) this.#toWorkers.data.give(socket)
    for (const handOver of Object.values(this.#toWorkers)) handOver.offerWaiting()
  }

  closeAll(): void {
    this.close('admin')
    this.close('data')
    this.#offerAgain?.cancel()
    for (const socket of this.#held.splice(0)) socket.destroy()
  }

  /** Begins with another worker each time. */
  #inTurn(workers: readonly SupervisedWorker[]): SupervisedWorker[] {
    const first = this.#turn++ % Math.max(1, workers.length)
    return [...workers.slice(first), ...workers.slice(0, first)]
  }

  #hold(socket: Socket): void {
    const { isDraining, clock } = this.#options
    if (isDraining() || this.#held.length >= MAX_HELD) return void socket.destroy()
    this.#held.push(socket)
    this.#offerAgain ??= clock.schedule(OFFER_AGAIN_MS, () => this.serveWaiting())
    this.#offerAgain.unref()
  }
}

function answerUnavailable(socket: Socket, clock: Clock): void {
  const head = `HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: ${UNAVAILABLE.length}\r\nconnection: close\r\n\r\n`
  socket.end(head + UNAVAILABLE)
  // Without reading, the supervisor would not notice that the client closes the connection.
  linger(socket, socket, clock)
  socket.resume()
  // A supervisor whose workers have ended does not wait for it.
  socket.unref()
}
