/** The supervisor's view of one worker process. */
import type { ChildProcess } from 'node:child_process'
import type { Socket } from 'node:net'
import { Channel, type MessagePort } from './channel.js'
import type { MetricJson, SupervisorApi, WorkerApi } from './protocol.js'

type State = 'starting' | 'ready' | 'draining' | 'ended'

export class SupervisedWorker {
  /** 1 to `workers`; undefined in a spare process. A replacement has the slot of the worker that it replaces. */
  slot: number | undefined
  readonly channel: Channel<WorkerApi>
  state: State = 'starting'
  /** When it became ready. */
  readyAtMs: number | undefined
  /** As the worker last reported. */
  isOverloaded = false
  /** Its metrics when they were last read. */
  metrics: readonly MetricJson[] = []
  readonly #process: ChildProcess

  constructor(process: ChildProcess, api: SupervisorApi) {
    this.#process = process
    this.channel = new Channel<WorkerApi>(portOf(process), { ...api })
  }

  get pid(): number | undefined {
    return this.#process.pid
  }

  /** Whether its process runs. Until `hasStarted` it may lose messages. */
  get isAlive(): boolean {
    return this.state !== 'ended' && this.#process.connected
  }

  /** Whether it serves requests, or did before it was drained. */
  get hasStarted(): boolean {
    return this.readyAtMs !== undefined
  }

  /** Calls once, with a few words on how it ended. A process that could not be started has ended, too. */
  onEnd(listener: (how: string) => void): void {
    const end = (how: string) => {
      if (this.state === 'ended') return
      this.state = 'ended'
      listener(how)
    }
    const close = () => this.channel.close()
    this.#process.once('exit', (code, signal) => end(signal ?? `exit code ${code}`))
    // Not at its exit: answers that it sent before may still be on their way. 'disconnect' follows the last one, but
    // Node does not emit it while a connection is on its way to the process. 'close' follows the exit in any case.
    this.#process.once('disconnect', close)
    this.#process.once('close', close)
    // Also emitted if a message or a signal could not be sent; then the process still runs, or 'exit' follows.
    this.#process.on('error', (error) => {
      if (this.pid !== undefined) return
      end(error.message)
      close()
    })
  }

  drain(options: { graceMs?: number; delayMs?: number }): void {
    if (this.state !== 'ended') this.state = 'draining'
    this.channel.call('drain', options).catch(() => {})
  }

  kill(): void {
    this.#process.kill('SIGKILL')
  }
}

function portOf(process: ChildProcess): MessagePort {
  /** Connections that the process has not received yet, in the order in which Node sends them. */
  const unconfirmed = new Set<{ onFailed(error: Error): void }>()
  // Node's own messages for each connection: received, or not received because the process has too many open files.
  // Then Node drops the message that came with the connection, and `process.send` reports no error.
  process.on('internalMessage', ({ cmd }: { cmd?: string }) => {
    if (cmd !== 'NODE_HANDLE_ACK' && cmd !== 'NODE_HANDLE_NACK') return
    const [first] = unconfirmed
    if (first === undefined) return
    unconfirmed.delete(first)
    if (cmd === 'NODE_HANDLE_NACK')
      first.onFailed(new Error('the worker has no free file descriptor'))
  })
  return {
    send(message, handle: Socket | undefined, onFailed) {
      const sent = { onFailed }
      if (handle !== undefined) unconfirmed.add(sent)
      // The connection stays open here until the worker has confirmed it: otherwise it could not go to another one.
      process.send(message, handle, { keepOpen: true }, (error) => {
        if (error === null) return
        unconfirmed.delete(sent)
        onFailed(error)
      })
    },
    onMessage: (listener) => void process.on('message', listener),
  }
}
