/**
 * Runs a gateway as several worker processes: starts them, replaces those that end, rolls reloads through
 * them, drains them, and hands them the connections that it accepts. Requests never pass through it.
 */
import type { Socket } from 'node:net'
import type { Clock } from 'spillway'
import { systemClock, type Timer } from 'spillway/internal'
import type { ReloadReport } from '../reload/reloads.js'
import { aggregateMetrics, keepTotals } from './aggregate-metrics.js'
import { HandOver } from './hand-over.js'
import type { FileContents, MetricJson, PortName, SupervisorApi, WorkersState } from './protocol.js'
import { RestartPolicy } from './restart-policy.js'
import type { SupervisedWorker } from './supervised-worker.js'

/** A port that was opened. */
export interface Listener {
  readonly port: number
  close(): void
}

export interface SupervisorOptions {
  readonly workers: number
  /** Starts the process of a worker. */
  readonly fork: (slot: number, api: SupervisorApi) => SupervisedWorker
  /** The files as they are on the disk now. */
  readonly readFiles: () => FileContents
  /** Opens the admin port, or the data port. Their connections are not read here. */
  readonly listen: (port: PortName, onConnection: (socket: Socket) => void) => Promise<Listener>
  /** A line for the terminal or the log of the container. */
  readonly say: (text: string) => void
  readonly clock?: Clock
}

/** A worker that cannot start, or workers that end again and again. */
export class WorkersFailedError extends Error {
  readonly code: string | undefined

  constructor(message: string, code?: string) {
    super(message)
    this.code = code
  }
}

/** What is left of a worker, or of the attempt to start one. */
type EndedWorker = Pick<SupervisedWorker, 'slot' | 'pid' | 'readyAtMs' | 'metrics'>

const RELOAD_MS = 30_000
/** Time after the grace of a drain to abort requests and close the store. */
const AFTER_GRACE_MS = 10_000
/** Time that a worker has to end after it was asked to end at once. */
const END_MS = 5_000
const UNAVAILABLE = '{"status":"starting"}'
/** Connections that wait until a worker is ready. */
const MAX_HELD = 1_000

export class Supervisor {
  readonly #options: SupervisorOptions
  readonly #policy: RestartPolicy
  readonly #workers = new Map<number, SupervisedWorker>()
  readonly #clock: Clock
  readonly #restarts = new Set<Timer>()
  /** Called when a worker that starts is ready, or has ended. */
  readonly #onceStarted = new Map<SupervisedWorker, (() => void)[]>()
  readonly #toAdmin: HandOver
  readonly #toData: HandOver
  /** Connections to the data port that found no worker. */
  readonly #held: Socket[] = []
  #turn = 0
  #admin: Listener | undefined
  #data: Listener | undefined
  /** Counters and histograms of workers that have ended. */
  #totals: readonly MetricJson[] = []
  #restartCount = 0
  /** The files that the workers run with. */
  #contents: FileContents
  #reloading: Promise<unknown> = Promise.resolve()
  #started = false
  #draining = false
  #onStarted: (() => void) | undefined
  #onEnded: (() => void) | undefined
  #onFailed: ((error: Error) => void) | undefined
  /** Resolves when all workers have ended because of `drain`. Rejects if they cannot be kept running. */
  readonly ended: Promise<void>

  constructor(options: SupervisorOptions, contents: FileContents) {
    this.#options = options
    this.#contents = contents
    this.#policy = new RestartPolicy(options.workers)
    this.#clock = options.clock ?? systemClock
    const isLast = () => this.#draining
    this.#toAdmin = new HandOver({
      port: 'admin',
      isLast,
      // Always the first worker, so that later connections of a dashboard reach the same one.
      workers: () => this.#serving(),
      onRefused: answerUnavailable,
    })
    this.#toData = new HandOver({
      port: 'data',
      isLast,
      workers: () => this.#inTurn(this.#serving()),
      onRefused: (socket) => this.#hold(socket),
    })
    this.ended = new Promise((resolve, reject) => {
      this.#onEnded = resolve
      this.#onFailed = reject
    })
    this.ended.catch(() => {})
  }

  /** Resolves when every worker serves requests. */
  async start(): Promise<{ port: number; adminPort: number }> {
    this.#admin = await this.#options.listen('admin', (socket) => void this.#toAdmin.give(socket))
    const started = new Promise<void>((resolve) => {
      this.#onStarted = resolve
    })
    for (let slot = 1; slot <= this.#options.workers; slot++) this.#fork(slot)
    const failed = this.ended.then(() => {
      throw new WorkersFailedError('the gateway was stopped before it had started')
    })
    try {
      await Promise.race([started, failed])
      this.#data = await this.#options.listen('data', (socket) => void this.#toData.give(socket))
      return { port: this.#data.port, adminPort: this.#admin.port }
    } catch (error) {
      this.kill()
      this.#admin?.close()
      throw error
    }
  }

  /** Reads the files and has every worker use them, one after the other. */
  reload(cause: string): Promise<ReloadReport> {
    const report = this.#reloading.then(() => this.#roll(cause))
    this.#reloading = report.catch(() => {})
    return report
  }

  /** Aborts running requests, and kills workers that have not ended soon after. */
  end(): void {
    this.drain({ graceMs: 0, delayMs: 0 })
    this.#clock.schedule(END_MS, () => this.kill()).unref()
  }

  /** Drains all workers at once. Called again with a shorter grace, that one counts. */
  drain(options: { graceMs: number; delayMs: number }): void {
    this.#stopRestarts()
    for (const worker of this.#workers.values()) worker.drain(options)
    this.#tellState()
    this.#clock.schedule(options.delayMs, () => this.#data?.close()).unref()
    const patienceMs = options.delayMs + options.graceMs + AFTER_GRACE_MS
    this.#clock.schedule(patienceMs, () => this.kill()).unref()
    this.#finish()
  }

  /** Ends all workers at once, with the requests in them. */
  kill(): void {
    this.#stopRestarts()
    for (const worker of this.#workers.values()) worker.kill()
  }

  #stopRestarts(): void {
    this.#draining = true
    for (const timer of this.#restarts) timer.cancel()
    this.#restarts.clear()
  }

  #fork(slot: number): void {
    let worker: SupervisedWorker | undefined
    const api: SupervisorApi = {
      configuration: () => this.#contents,
      ready: () => worker && this.#ready(worker),
      failed: (reason) => this.#failed(slot, reason),
      metrics: () => this.metrics(),
      snapshots: () => this.#snapshots(),
      reload: (cause) => this.reload(cause),
    }
    try {
      worker = this.#options.fork(slot, api)
    } catch (error) {
      // Some errors of the operating system are thrown, such as ENOMEM.
      const unborn = { slot, pid: undefined, readyAtMs: undefined, metrics: [] }
      return this.#replace(unborn, error instanceof Error ? error.message : String(error))
    }
    this.#workers.set(slot, worker)
    const forked = worker
    worker.onEnd((how) => {
      this.#startIsOver(forked)
      this.#replace(forked, how)
    })
  }

  #startIsOver(worker: SupervisedWorker): void {
    for (const proceed of this.#onceStarted.get(worker) ?? []) proceed()
    this.#onceStarted.delete(worker)
  }

  /**
   * Resolves when a worker is ready or has ended. A process that starts loses the messages it is sent before it
   * listens to them, so it is asked for nothing before it is ready.
   */
  async #whenStarted(worker: SupervisedWorker): Promise<void> {
    if (worker.hasStarted || !worker.isAlive) return
    await new Promise<void>((resolve, reject) => {
      const timer = this.#clock.schedule(RELOAD_MS, () =>
        reject(new Error(`it has not started within ${RELOAD_MS} ms`)),
      )
      const proceed = () => {
        timer.cancel()
        resolve()
      }
      this.#onceStarted.set(worker, [...(this.#onceStarted.get(worker) ?? []), proceed])
    })
  }

  /** Workers that answer. */
  #answering(): SupervisedWorker[] {
    return this.#inOrder().filter(({ isAlive, hasStarted }) => isAlive && hasStarted)
  }

  #ready(worker: SupervisedWorker): void {
    worker.readyAtMs = this.#clock.now()
    this.#startIsOver(worker)
    if (this.#draining) return worker.drain({ graceMs: 0, delayMs: 0 })
    worker.state = 'ready'
    if (!this.#started && this.#state().ready === this.#options.workers) {
      this.#started = true
      this.#onStarted?.()
    }
    this.#tellState()
    for (const socket of this.#held.splice(0)) void this.#toData.give(socket)
  }

  /** At the first start the gateway gives up: a port in use or an invalid file would fail again. */
  #failed(slot: number, { code, message }: { code: string | undefined; message: string }): void {
    if (!this.#started) this.#giveUp(new WorkersFailedError(message, code))
    else this.#options.say(`worker ${slot} cannot start: ${message}\n`)
  }

  #replace(worker: EndedWorker, how: string): void {
    this.#workers.delete(worker.slot)
    this.#totals = keepTotals(this.#totals, worker.metrics)
    if (this.#draining) return this.#finish()
    this.#tellState()
    const { readyAtMs } = worker
    this.#policy.ended(readyAtMs === undefined ? undefined : this.#clock.now() - readyAtMs)
    const isServing = [...this.#workers.values()].some(({ state }) => state === 'ready')
    if (this.#policy.isCrashLoop && !isServing) {
      const times = this.#policy.earlyEnds
      const message = `workers ended ${times} times in a row soon after their start, the last one with ${how}; giving up`
      return this.#giveUp(new WorkersFailedError(message))
    }
    const { delayMs } = this.#policy
    const when = delayMs === 0 ? 'now' : `in ${delayMs} ms`
    const who = `worker ${worker.slot}`
    const what =
      worker.pid === undefined
        ? `${who} could not be started: ${how}; the next attempt is`
        : `${who} (pid ${worker.pid}) ended with ${how}; its replacement starts`
    this.#options.say(`${what} ${when}\n`)
    this.#restartCount++
    const timer = this.#clock.schedule(delayMs, () => {
      this.#restarts.delete(timer)
      this.#fork(worker.slot)
    })
    this.#restarts.add(timer)
  }

  #giveUp(error: Error): void {
    this.#onFailed?.(error)
    this.kill()
    // If no worker is left to be killed, no end of a worker follows that would finish.
    this.#finish()
  }

  #finish(): void {
    if (this.#workers.size > 0) return
    this.#admin?.close()
    this.#data?.close()
    for (const socket of this.#held.splice(0)) socket.destroy()
    this.#onEnded?.()
  }

  async #roll(cause: string): Promise<ReloadReport> {
    const contents = this.#options.readFiles()
    const done = new Set<SupervisedWorker>()
    let outcome: ReloadReport | undefined
    // Looks again after each: a worker that was started meanwhile has the old files.
    for (;;) {
      const worker = this.#inOrder().find((each) => each.isAlive && !done.has(each))
      if (worker === undefined) break
      done.add(worker)
      const report = await this.#whenStarted(worker)
        .then(() => worker.channel.call('reload', { cause, contents }, { timeoutMs: RELOAD_MS }))
        .catch((error: Error) => refusedUnlessEnded(worker, error))
      if (report === undefined) continue
      if (outcome === undefined || report.result === 'refused') outcome = report
    }
    outcome ??= { result: 'refused', reason: 'no worker is running' }
    if (outcome.result !== 'refused') this.#contents = contents
    return outcome
  }

  /** Metrics of all workers in the text format of Prometheus. */
  async metrics(): Promise<string> {
    await Promise.all(
      this.#answering().map(async (worker) => {
        // A worker that does not answer counts with its last metrics.
        worker.metrics = await worker.channel.call('metrics', undefined).catch(() => worker.metrics)
      }),
    )
    return aggregateMetrics([
      this.#ownMetrics(),
      this.#totals,
      ...this.#inOrder().map(({ metrics }) => metrics),
    ])
  }

  #ownMetrics(): MetricJson[] {
    const { ready, total } = this.#state()
    const metric = (name: string, type: string, help: string, values: MetricJson['values']) => ({
      name,
      type,
      help,
      values,
    })
    return [
      metric('spillway_workers', 'gauge', 'Worker processes by state.', [
        { labels: { state: 'ready' }, value: ready },
        { labels: { state: 'other' }, value: total - ready },
      ]),
      metric(
        'spillway_worker_restarts_total',
        'counter',
        'Workers that were started in place of one that ended.',
        [{ labels: {}, value: this.#restartCount }],
      ),
    ]
  }

  async #snapshots(): Promise<object> {
    const all = this.#inOrder().filter((each) => each.isAlive)
    const workers = await Promise.all(
      all.map(async ({ slot, pid, state, channel, hasStarted }) => {
        if (!hasStarted) return { worker: slot, pid, state }
        const snapshot = await channel.call('snapshot', undefined).catch(() => undefined)
        return { worker: slot, pid, state, ...snapshot }
      }),
    )
    return { workers }
  }

  /** Workers that take connections: those that are ready, or otherwise those that are drained. */
  #serving(): SupervisedWorker[] {
    const answering = this.#answering()
    const ready = answering.filter(({ state }) => state === 'ready')
    return ready.length > 0 ? ready : answering
  }

  /** Begins with another worker each time. */
  #inTurn(workers: readonly SupervisedWorker[]): SupervisedWorker[] {
    const first = this.#turn++ % Math.max(1, workers.length)
    return [...workers.slice(first), ...workers.slice(0, first)]
  }

  #hold(socket: Socket): void {
    if (this.#draining || this.#held.length >= MAX_HELD) socket.destroy()
    else this.#held.push(socket)
  }

  #state(): WorkersState {
    const ready = [...this.#workers.values()].filter(({ state }) => state === 'ready').length
    return { ready, total: this.#options.workers, started: this.#started }
  }

  #tellState(): void {
    const state = this.#state()
    for (const { channel } of this.#answering()) {
      channel.call('workersChanged', state).catch(() => {})
    }
  }

  #inOrder(): SupervisedWorker[] {
    return [...this.#workers.values()].toSorted((a, b) => a.slot - b.slot)
  }
}

/** A worker that ended during its reload is replaced by one with the new files. */
function refusedUnlessEnded(worker: SupervisedWorker, error: Error): ReloadReport | undefined {
  if (!worker.isAlive) return undefined
  return { result: 'refused', reason: `worker ${worker.slot}: ${error.message}` }
}

function answerUnavailable(socket: Socket): void {
  const head = `HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: ${UNAVAILABLE.length}\r\nconnection: close\r\n\r\n`
  socket.end(head + UNAVAILABLE)
}
