/**
 * Hands accepted connections to worker processes. `node:cluster` does that, too, but it loses a connection whose
 * worker is killed before it has taken it: the supervisor keeps it open, no process reads it, and its client waits for
 * ever. Here such a connection goes to another worker. A worker confirms a connection before it reads from it, so
 * no request is read twice.
 */
import type { Socket } from 'node:net'
import type { PortName } from './protocol.js'
import type { SupervisedWorker } from './supervised-worker.js'

export interface HandOverOptions {
  readonly port: PortName
  /** Workers that serve requests, the preferred one first. */
  workers(): readonly SupervisedWorker[]
  /** All workers are being drained: they take what was accepted before the port was closed. */
  isLast(): boolean
  /** No worker has taken the connection. */
  onRefused(socket: Socket): void
}

export class HandOver {
  readonly #options: HandOverOptions

  constructor(options: HandOverOptions) {
    this.#options = options
  }

  async give(socket: Socket): Promise<void> {
    const { port, workers, isLast, onRefused } = this.#options
    socket.on('error', () => {})
    const asked = new Set<SupervisedWorker>()
    for (;;) {
      const worker = workers().find((each) => !asked.has(each))
      if (worker === undefined) return onRefused(socket)
      asked.add(worker)
      // Without a timeout: a worker that is late may still take it, and only one may have it.
      const options = { handle: socket, timeoutMs: Number.POSITIVE_INFINITY }
      const isTaken = await worker.channel
        .call('serve', { port, isLast: isLast() }, options)
        .catch(() => false)
      // Closes the supervisor's copy; the worker has its own.
      if (isTaken) return void socket.destroy()
    }
  }
}
