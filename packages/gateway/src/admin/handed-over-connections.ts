/**
 * Connections to the admin port that another process has accepted. Node limits their number and their time only for
 * a server that listens itself.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from 'spillway'
import { systemClock, type Timer } from 'spillway/internal'

interface Connection {
  /** Requests without a complete answer. */
  running: number
  timer: Timer | undefined
}

export class HandedOverConnections {
  readonly #server: Server
  readonly #clock: Clock
  readonly #open = new Map<Socket, Connection>()
  #isClosed = false

  /** The limits are those of the server. */
  constructor(server: Server, clock: Clock = systemClock) {
    this.#server = server
    this.#clock = clock
    server.on('request', (request, response) => this.#onRequest(request, response))
  }

  /** Serves a connection, or closes it if there are too many. False: the server is closed, so it is not taken. */
  serve(socket: Socket): boolean {
    if (this.#isClosed) return false
    if (this.#open.size >= this.#server.maxConnections) {
      socket.destroy()
      return true
    }
    const connection: Connection = { running: 0, timer: undefined }
    this.#open.set(socket, connection)
    socket.once('close', () => {
      connection.timer?.cancel()
      this.#open.delete(socket)
    })
    this.#limit(connection, this.#server.headersTimeout, () => socket.destroy())
    this.#server.emit('connection', socket)
    // It was paused, so that the process that accepted it would not read the request itself.
    socket.resume()
    return true
  }

  close(): void {
    this.#isClosed = true
    for (const socket of [...this.#open.keys()]) socket.destroy()
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    const connection = this.#open.get(socket)
    if (connection === undefined) return
    const { headersTimeout, requestTimeout, keepAliveTimeout } = this.#server
    connection.running++
    // Its body may be late, but its answer may take any time: the feed of a dashboard never ends.
    this.#limit(connection, requestTimeout, () => {
      if (!request.complete) socket.destroy()
    })
    response.once('close', () => {
      connection.running--
      if (connection.running > 0 || socket.destroyed) return
      this.#limit(connection, keepAliveTimeout + headersTimeout, () => socket.destroy())
    })
  }

  #limit(connection: Connection, ms: number, onLate: () => void): void {
    connection.timer?.cancel()
    connection.timer = this.#clock.schedule(ms, onLate)
    connection.timer.unref()
  }
}
