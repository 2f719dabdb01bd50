/**
 * Hands accepted connections to worker processes. `node:cluster` does that, too, but it loses a connection whose
 * worker is killed before it has taken it: the supervisor keeps it open, no process reads it, and its client waits
 * until its own timeout.
 *
 * The states of a connection in the supervisor, which never reads from it:
 *
 *     waiting --> offered to one worker --> taken
 *        ^                 |
 *        +-----------------+  refused, not received, or the worker has ended
 *
 * - waiting: only the supervisor has it. It is offered to the next worker that is free, which means that the worker
 *   has answered earlier offers. So a worker that hangs gets no more than `maxOffered` connections. This costs no
 *   time: Node sends one connection after the other to a process anyway.
 * - offered: a copy is on its way to the worker, and the supervisor keeps its own. The worker decides in the turn of
 *   its event loop in which it receives the copy, before it can read from it. So no request is read by two workers.
 * - taken: the worker has confirmed it and reads from it. The supervisor closes its copy.
 * - refused: the worker is being drained. It has closed its copy without reading.
 * - not received: the worker had no free file descriptor, and Node has dropped the message.
 * - ended: the worker has not confirmed the connection, so it has not read from it.
 *
 * A connection is offered to each worker once. If none has taken it, `onRefused` is called.
 */
import type { Socket } from 'node:net'
import type { PortName } from './protocol.js'
import type { SupervisedWorker } from './supervised-worker.js'

export interface HandOverOptions {
  readonly port: PortName
  /** Most connections that a worker is offered at once. */
  readonly maxOffered: number
  /** Workers that serve requests, the preferred one first. */
  workers(): readonly SupervisedWorker[]
  /** All workers are draining: they take connections that were accepted before the port was closed. */
  isLast(): boolean
  /** No worker has taken the connection. */
  onRefused(socket: Socket): void
}

interface Waiting {
  readonly socket: Socket
  /** Workers that have not taken it. */
  readonly offeredTo: Set<SupervisedWorker>
}

export class HandOver {
  readonly #options: HandOverOptions
  readonly #waiting: Waiting[] = []
  readonly #offered = new WeakMap<SupervisedWorker, number>()

  constructor(options: HandOverOptions) {
    this.#options = options
  }

  give(socket: Socket): void {
    this.#waiting.push({ socket, offeredTo: new Set() })
    this.offerWaiting()
  }

  /** Offers connections to free workers. Called when a worker may have become free. */
  offerWaiting(): void {
    if (this.#waiting.length === 0) return
    const workers = this.#options.workers()
    const waitOn: Waiting[] = []
    while (this.#waiting.length > 0) {
      if (workers.length > 0 && !workers.some((each) => this.#isFree(each))) break
      const next = this.#waiting.shift() as Waiting
      const left = workers.filter((each) => !next.offeredTo.has(each))
      const worker = left.find((each) => this.#isFree(each))
      if (worker !== undefined) void this.#offer(next, worker)
      else if (left.length > 0) waitOn.push(next)
      else this.#options.onRefused(next.socket)
    }
    this.#waiting.unshift(...waitOn)
  }

  #isFree(worker: SupervisedWorker): boolean {
    return (this.#offered.get(worker) ?? 0) < this.#options.maxOffered
  }

  async #offer(waiting: Waiting, worker: SupervisedWorker): Promise<void> {
    const { socket, offeredTo } = waiting
    const { port, isLast } = this.#options
    offeredTo.add(worker)
    this.#count(worker, 1)
    // Without a timeout: a late worker may still take the connection.
    const options = { handle: socket, timeoutMs: Number.POSITIVE_INFINITY }
    const isTaken = await worker.channel
      .call('serve', { port, isLast: isLast() }, options)
      .catch(() => false)
    this.#count(worker, -1)
    if (isTaken) socket.destroy()
    else this.#waiting.unshift(waiting)
    this.offerWaiting()
  }

  #count(worker: SupervisedWorker, change: 1 | -1): void {
    this.#offered.set(worker, (this.#offered.get(worker) ?? 0) + change)
  }
}

/** Called by a worker for each connection: `serve` of its gateway, once that has started. */
type Serve = (port: PortName, socket: Socket, isLast: boolean) => boolean

/**
 * Takes or refuses a connection in the worker that it is offered to. Must be called in the turn of the event loop in
 * which the worker received it. `socket` is undefined if the supervisor has closed it on the way.
 */
export function receive(
  { port, isLast }: { port: PortName; isLast: boolean },
  socket: Socket | undefined,
  serve: Serve | undefined,
): boolean {
  if (socket === undefined) return true
  // Its client may have reset it while it waited for a worker.
  socket.on('error', () => {})
  const isTaken = serve?.(port, socket, isLast) ?? false
  // Node reads from every connection that a process receives, and another worker would need those bytes.
  if (!isTaken) socket.destroy()
  return isTaken
}
