/**
 * Runs a gateway as several worker processes: starts them, replaces those that end, rolls reloads through
 * them, drains them, and hands them the connections that it accepts. Requests never pass through it.
 */
import type { Clock } from 'spillway'
import { systemClock, type Timer } from 'spillway/internal'
import type { ReloadReport } from '../reload/reloads.js'
import {
  aggregateMetrics,
  keepTotals,
  type ReloadCounts,
  supervisorMetrics,
} from './aggregate-metrics.js'
import { findRequest, mergeDecisions } from './merge-decisions.js'
import { WorkerPorts, type WorkerPortsOptions } from './ports.js'
import type {
  FileContents,
  MetricJson,
  SupervisorApi,
  WorkerStart,
  WorkersState,
} from './protocol.js'
import { RestartPolicy } from './restart-policy.js'
import type { SupervisedWorker } from './supervised-worker.js'

export interface SupervisorOptions {
  readonly workers: number
  /** Starts the process of a worker. */
  readonly fork: (api: SupervisorApi) => SupervisedWorker
  /**
   * Whether one more process is kept that has loaded its code and waits to replace a worker that ends. Loading takes
   * most of a start: 0.7 s of computing time, and much longer while all cores are busy. Default: false.
   */
  readonly keepsSpare?: boolean
  /** The current files. */
  readonly readFiles: () => FileContents
  readonly listen: WorkerPortsOptions['listen']
  /** A line for the terminal or the log of the container. */
  readonly print: (text: string) => void
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

/** Result of a worker that has ended, or of a failed start. */
type EndedWorker = Pick<SupervisedWorker, 'pid' | 'readyAtMs' | 'metrics'> & { slot: number }

const RELOAD_MS = 30_000
/** Before a spare process that ended is replaced. */
const NEXT_SPARE_MS = 10_000
/** Time after the grace of a drain to abort requests and close the store. */
const AFTER_GRACE_MS = 10_000
/** Time between the command to end at once and SIGKILL. */
const END_MS = 5_000
export class Supervisor {
  readonly #options: SupervisorOptions
  readonly #policy: RestartPolicy
  readonly #workers = new Map<number, SupervisedWorker>()
  readonly #clock: Clock
  readonly #restarts = new Set<Timer>()
  #spare: SupervisedWorker | undefined
  /** Pending answers to processes that request, or will request, their configuration. */
  readonly #assign = new Map<SupervisedWorker, (start: WorkerStart) => void>()
  /** Called when a worker that starts is ready, or has ended. */
  readonly #onceStarted = new Map<SupervisedWorker, (() => void)[]>()
  readonly #ports: WorkerPorts
  /** Counters and histograms of workers that have ended. */
  #totals: readonly MetricJson[] = []
  #restartCount = 0
  readonly #reloads: ReloadCounts = {
    counts: { applied: 0, unchanged: 0, refused: 0 },
    last: undefined,
  }
  /** The files that the workers run with. */
  #contents: FileContents
  #reloading: Promise<unknown> = Promise.resolve()
  #started = false
  /** Clients can connect to the data port. */
  #isOpen = false
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
    this.#ports = new WorkerPorts({
      listen: options.listen,
      workers: () => this.#serving(),
      isDraining: () => this.#draining,
      clock: this.#clock,
    })
    this.ended = new Promise((resolve, reject) => {
      this.#onEnded = resolve
      this.#onFailed = reject
    })
    this.ended.catch(() => {})
  }

  /** Resolves when every worker serves requests. */
  async start(): Promise<{ port: number; adminPort: number }> {
    const adminPort = await this.#ports.open('admin')
    const started = new Promise<void>((resolve) => {
      this.#onStarted = resolve
    })
    for (let slot = 1; slot <= this.#options.workers; slot++) this.#fork(slot)
    const failed = this.ended.then(() => {
      throw new WorkersFailedError('the gateway was stopped before it had started')
    })
    try {
      await Promise.race([started, failed])
      const port = await this.#ports.open('data')
      this.#isOpen = true
      this.#publishState()
      return { port, adminPort }
    } catch (error) {
      this.kill()
      this.#ports.closeAll()
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
    this.#publishState()
    this.#clock.schedule(options.delayMs, () => this.#ports.close('data')).unref()
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
    this.#spare?.kill()
  }

  /** Starts the worker of a slot: the spare process if there is one, or a new one. */
  #fork(slot: number): void {
    let worker = this.#spare?.isAlive ? this.#spare : undefined
    this.#spare = undefined
    try {
      worker ??= this.#forkProcess()
    } catch (error) {
      // Some errors of the operating system are thrown, such as ENOMEM.
      const unborn = { slot, pid: undefined, readyAtMs: undefined, metrics: [] }
      return this.#replace(unborn, error instanceof Error ? error.message : String(error))
    }
    worker.slot = slot
    this.#workers.set(slot, worker)
    this.#assign.get(worker)?.({ slot, contents: this.#contents })
  }

  /** A process without a slot. */
  #forkProcess(): SupervisedWorker {
    let assign: (start: WorkerStart) => void = () => {}
    const assigned = new Promise<WorkerStart>((resolve) => {
      assign = resolve
    })
    const api: SupervisorApi = {
      configuration: () => assigned,
      ready: () => this.#ready(worker),
      overloaded: (isOverloaded) => {
        worker.isOverloaded = isOverloaded
        this.#publishState()
      },
      failed: (reason) => this.#failed(worker.slot, reason),
      metrics: () => this.metrics(),
      snapshots: () => this.#snapshots(),
      decisions: (cursors) =>
        mergeDecisions(
          this.#answering().filter((each) => each !== worker),
          cursors,
        ),
      find: (requestId) =>
        findRequest(
          this.#answering().filter((each) => each !== worker),
          requestId,
        ),
      reload: (cause) => this.reload(cause),
    }
    const worker = this.#options.fork(api)
    this.#assign.set(worker, assign)
    worker.onEnd((how) => {
      this.#startIsOver(worker)
      this.#assign.delete(worker)
      if (worker.slot !== undefined)
        this.#replace({ ...endedFacts(worker), slot: worker.slot }, how)
      else this.#spareEnded(worker)
    })
    return worker
  }

  /** After all workers serve, because it would compete with them for CPU time. */
  #keepSpare(): void {
    const isNeeded = this.#options.keepsSpare === true && !this.#draining
    if (!isNeeded || this.#spare !== undefined) return
    if (this.#state().ready < this.#options.workers) return
    try {
      this.#spare = this.#forkProcess()
    } catch {
      this.#spareEnded(undefined)
    }
  }

  #spareEnded(worker: SupervisedWorker | undefined): void {
    if (this.#spare !== worker || this.#draining) return
    this.#spare = undefined
    const timer = this.#clock.schedule(NEXT_SPARE_MS, () => {
      this.#restarts.delete(timer)
      this.#keepSpare()
    })
    this.#restarts.add(timer)
    timer.unref()
  }

  #startIsOver(worker: SupervisedWorker): void {
    for (const proceed of this.#onceStarted.get(worker) ?? []) proceed()
    this.#onceStarted.delete(worker)
  }

  /**
   * Resolves when a worker is ready or has ended. A starting process loses messages that arrive before it listens, so
   * none are sent before it is ready.
   */
  async #whenStarted(worker: SupervisedWorker): Promise<void> {
    if (worker.hasStarted || !worker.isAlive) return
    await new Promise<void>((resolve, reject) => {
      const timer = this.#clock.schedule(RELOAD_MS, () =>
        reject(new Error(`the worker did not start within ${RELOAD_MS} ms`)),
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
    this.#publishState()
    this.#ports.serveWaiting()
    this.#keepSpare()
  }

  /** At the first start the gateway gives up: a port in use or an invalid file would fail again. */
  #failed(
    slot: number | undefined,
    { code, message }: { code: string | undefined; message: string },
  ): void {
    if (!this.#started) this.#giveUp(new WorkersFailedError(message, code))
    else this.#options.print(`worker ${slot} cannot start: ${message}\n`)
  }

  #replace(worker: EndedWorker, how: string): void {
    this.#workers.delete(worker.slot)
    this.#totals = keepTotals(this.#totals, worker.metrics)
    if (this.#draining) return this.#finish()
    this.#publishState()
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
    this.#options.print(`${what} ${when}\n`)
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
    // Without a live worker, no 'ended' event follows that would finish the shutdown.
    this.#finish()
  }

  #finish(): void {
    if (this.#workers.size > 0) return
    this.#ports.closeAll()
    this.#onEnded?.()
  }

  async #roll(cause: string): Promise<ReloadReport> {
    const contents = this.#options.readFiles()
    const done = new Set<SupervisedWorker>()
    let outcome: ReloadReport | undefined
    // Checks again after each replacement: a worker started in the meantime has the old files.
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
    this.#reloads.counts[outcome.result]++
    this.#reloads.last = outcome.result
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
    const own = supervisorMetrics(this.#state(), this.#restartCount, this.#reloads)
    return aggregateMetrics(own, [this.#totals, ...this.#inOrder().map(({ metrics }) => metrics)])
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

  #state(): WorkersState {
    const ready = [...this.#workers.values()].filter(({ state }) => state === 'ready')
    const overloaded = ready.filter(({ isOverloaded }) => isOverloaded).length
    const { workers: total } = this.#options
    return { ready: ready.length, total, overloaded, started: this.#isOpen }
  }

  #publishState(): void {
    const state = this.#state()
    for (const { channel } of this.#answering()) {
      channel.call('workersChanged', state).catch(() => {})
    }
  }

  #inOrder(): SupervisedWorker[] {
    return [...this.#workers].toSorted(([a], [b]) => a - b).map(([, worker]) => worker)
  }
}

function endedFacts({ pid, readyAtMs, metrics }: SupervisedWorker): Omit<EndedWorker, 'slot'> {
  return { pid, readyAtMs, metrics }
}

/** A worker that ended during its reload is replaced by one with the new files. */
function refusedUnlessEnded(worker: SupervisedWorker, error: Error): ReloadReport | undefined {
  if (!worker.isAlive) return undefined
  return { result: 'refused', reason: `worker ${worker.slot}: ${error.message}` }
}
