/** One worker process, as the supervisor sees it. */
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
  /** As it last reported. */
  isOverloaded = false
  /** As last read. */
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
      // Answers that it sent before its end may still be on their way. 'disconnect' follows the last one.
      if (this.#process.connected) this.#process.once('disconnect', () => this.channel.close())
      else this.channel.close()
      listener(how)
    }
    this.#process.once('exit', (code, signal) => end(signal ?? `exit code ${code}`))
    // Also emitted if a message or a signal could not be sent; then the process still runs, or 'exit' follows.
    this.#process.on('error', (error) => {
      if (this.pid === undefined) end(error.message)
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
  return {
    send(message, handle: Socket | undefined, onFailed) {
      // The connection stays open here until the worker has confirmed it: otherwise it could not go to another one.
      process.send(message, handle, { keepOpen: true }, (error) => error && onFailed(error))
    },
    onMessage: (listener) => void process.on('message', listener),
  }
}
