/** A supervisor with workers and connections that the test controls, in virtual time. */
import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { createVirtualClock } from 'spillway/testing'
import type { ReloadReport } from '../src/reload/reloads.js'
import type { FileContents, PortName, SupervisorApi } from '../src/workers/protocol.js'
import type { SupervisedWorker } from '../src/workers/supervised-worker.js'
import { Supervisor } from '../src/workers/supervisor.js'

/** A worker process that the test controls. */
export class FakeWorker {
  slot: number | undefined
  readonly api: SupervisorApi
  /** Calls of the supervisor, in order. */
  readonly calls: [name: string, argument: unknown][] = []
  state = 'starting'
  readyAtMs: number | undefined
  metrics = []
  isOverloaded = false
  isAlive = true
  pid = 1
  /** The answers to calls by name. */
  answers: Record<string, () => unknown> = {}
  #onEnd: (how: string) => void = () => {}

  get hasStarted(): boolean {
    return this.readyAtMs !== undefined
  }

  constructor(api: SupervisorApi) {
    this.api = api
  }

  readonly channel = {
    call: async (name: string, argument: unknown) => {
      if (!this.isAlive) throw new Error('the process has ended')
      this.calls.push([name, argument])
      // As a process that does not listen to messages yet.
      if (!this.hasStarted) return new Promise(() => {})
      return this.answers[name]?.()
    },
  }

  onEnd(listener: (how: string) => void): void {
    this.#onEnd = listener
  }

  drain(options: object): void {
    this.state = 'draining'
    this.calls.push(['drain', options])
  }

  kill(): void {
    this.end(null, 'SIGKILL')
  }

  end(code: number | null, signal: string | null = null): void {
    if (!this.isAlive) return
    this.isAlive = false
    this.state = 'ended'
    this.#onEnd(signal ?? `exit code ${code}`)
  }

  callsOf(name: string): unknown[] {
    return this.calls.filter(([each]) => each === name).map(([, argument]) => argument)
  }
}

/** A connection that the supervisor has accepted. */
export class FakeConnection extends EventEmitter {
  readonly written: string[] = []
  readonly bytesRead = 0
  isDestroyed = false
  isRead = false
  keepsProcess = true

  unref(): void {
    this.keepsProcess = false
  }

  resume(): void {
    this.isRead = true
  }

  destroySoon(): void {
    this.destroy()
  }

  end(text: string): void {
    this.written.push(text)
  }

  destroy(): void {
    this.isDestroyed = true
  }
}

export function createSupervisor({ workers = 2, keepsSpare = false } = {}) {
  const clock = createVirtualClock()
  const forked: FakeWorker[] = []
  const printed: string[] = []
  let files: FileContents = [['spillway.yaml', 'one']]
  const onConnection: Partial<Record<PortName, (socket: Socket) => void>> = {}
  const closed: PortName[] = []
  const listening = {
    failure: undefined as Error | undefined,
    /** Opening the data port waits for it. */
    mayOpen: undefined as Promise<void> | undefined,
  }
  let forkError: Error | undefined
  const supervisor = new Supervisor(
    {
      workers,
      keepsSpare,
      clock,
      fork: (api) => {
        if (forkError !== undefined) throw forkError
        const worker = new FakeWorker(api)
        forked.push(worker)
        return worker as unknown as SupervisedWorker
      },
      readFiles: () => files,
      listen: async (port, listener) => {
        if (port === 'data' && listening.failure !== undefined) throw listening.failure
        if (port === 'data') await listening.mayOpen
        onConnection[port] = listener
        return { port: port === 'admin' ? 8_081 : 8_080, close: () => void closed.push(port) }
      },
      print: (text) => printed.push(text),
    },
    files,
  )
  return {
    clock,
    supervisor,
    forked,
    printed,
    listening,
    closed,
    connect: (port: PortName, socket: FakeConnection) =>
      onConnection[port]?.(socket as unknown as Socket),
    isAdminClosed: () => closed.includes('admin'),
    failForks: (error: Error | undefined) => {
      forkError = error
    },
    write: (text: string) => {
      files = [['spillway.yaml', text]]
    },
    async started() {
      const started = supervisor.start()
      await clock.settle()
      for (const worker of forked) worker.api.ready()
      return started
    },
  }
}

export const applied: ReloadReport = {
  result: 'applied',
  generation: 2,
  added: [],
  changed: [],
  removed: [],
  afterRestart: [],
}
