/**
 * A bulkhead for CPU work: at most `limit` threads of its own for one kind of work, so that neither
 * the event loop nor other kinds of work wait for it. Not for I/O, which Node does better without
 * threads. Threads come from piscina, an optional peer dependency.
 *
 * Unlike a promise a thread can be stopped: when a call times out or its caller aborts, the work
 * really ends.
 */
import type { Piscina } from 'piscina'
import { clockOption } from '../core/injected.js'
import { type Check, type Duration, duration, object, optional, validate } from '../core/options.js'
import { type BulkheadOptions, type BulkheadSnapshot, createBulkhead } from './bulkhead.js'
import { createRegistry, type Registry } from './registry.js'
import { createTimeout } from './timeout.js'

export interface WorkerBulkheadOptions extends Omit<BulkheadOptions, 'graceMs'> {
  /** The module each thread loads; its default export is the work. A file URL or absolute path. */
  file: URL | string
  /** Longest time for one piece of work; its thread is stopped then. Default: none. */
  callMs?: Duration
}

export interface WorkerBulkhead extends Readonly<BulkheadSnapshot> {
  /**
   * Runs the work on a thread. Input and result are copied between threads. `task` names another
   * export of the file than its default.
   */
  run<T>(input: unknown, options?: { signal?: AbortSignal; task?: string }): Promise<T>
  snapshot(): BulkheadSnapshot
  /** Refuses new work and what is in line; resolves when all threads have ended. */
  close(): Promise<void>
}

const readFile: Check<string> = (value, path, problems) => {
  if (value instanceof URL) return value.href
  if (typeof value === 'string' && value !== '') return value
  problems.push({ path, message: 'must be a file URL or an absolute path' })
  return ''
}

const readOwn = object({
  file: readFile,
  callMs: optional(duration({ min: 1 })),
  clock: clockOption,
})

/** Long enough to outlast a pause between requests, short enough to give memory back. */
const IDLE_THREAD_MS = 30_000

export function createWorkerBulkhead(options: WorkerBulkheadOptions): WorkerBulkhead {
  const { file, callMs, ...admission } = options
  const own = validate('workerBulkhead', { file, callMs, clock: admission.clock }, readOwn)
  const slots = createBulkhead(admission)
  const timeout =
    own.callMs === undefined
      ? undefined
      : createTimeout({ name: slots.name, callMs: own.callMs, clock: own.clock })
  let pool: Promise<Piscina> | undefined

  function openPool(): Promise<Piscina> {
    pool ??= createPool({
      filename: own.file,
      minThreads: 0,
      maxThreads: slots.limit,
      idleTimeout: IDLE_THREAD_MS,
    })
    return pool
  }

  async function work(input: unknown, task: string, signal: AbortSignal | undefined) {
    const threads = await openPool()
    signal?.throwIfAborted()
    try {
      return await threads.run(input, { name: task, ...(signal && { signal }) })
    } catch (error) {
      // Piscina has an abort error of its own; the caller expects its signal's reason.
      signal?.throwIfAborted()
      throw error
    }
  }

  return {
    name: slots.name,
    limit: slots.limit,
    get active() {
      return slots.active
    },
    get waiting() {
      return slots.waiting
    },
    get available() {
      return slots.available
    },
    run(input, { signal, task = 'default' } = {}) {
      const options = signal && { signal }
      return slots.run(
        () =>
          timeout === undefined
            ? work(input, task, signal)
            : timeout.run((context) => work(input, task, context.signal), options),
        options,
      )
    },
    snapshot: () => slots.snapshot(),
    async close() {
      await slots.close()
      await (await pool)?.destroy()
    },
  }
}

export type WorkerBulkheadRegistry = Registry<WorkerBulkhead, Partial<WorkerBulkheadOptions>>

/** A pool per dependency, so that one kind of work cannot take another's threads. */
export function createWorkerBulkheadRegistry(
  defaults: Omit<WorkerBulkheadOptions, 'name'>,
): WorkerBulkheadRegistry {
  createWorkerBulkhead(defaults)
  return createRegistry((name, options) => createWorkerBulkhead({ ...defaults, ...options, name }))
}

async function createPool(options: ConstructorParameters<typeof Piscina>[0]): Promise<Piscina> {
  const { Piscina } = await import('piscina').catch((cause) => {
    throw new Error('worker bulkheads need the package piscina: npm install piscina', { cause })
  })
  return new Piscina(options)
}
