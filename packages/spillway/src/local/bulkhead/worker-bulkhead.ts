/**
 * A bulkhead for CPU work: at most `limit` threads for one kind of work, so that neither the event
 * loop nor other work waits for it. Not for I/O, which Node does better without threads. The
 * threads come from piscina, an optional peer dependency.
 *
 * Unlike a promise, a thread can be stopped: when a call times out or is aborted, its work really
 * ends.
 */
import { isAbsolute } from 'node:path'
import { pathToFileURL } from 'node:url'
import {
  type Check,
  type Duration,
  duration,
  object,
  optional,
  validate,
} from '../../core/options/checks.js'
import { createRegistry, type Registry } from '../registry.js'
import { createDeadlineTimeout, createTimeout } from '../timeout/timeout.js'
import {
  type BulkheadOptions,
  type BulkheadSnapshot,
  bulkheadFields,
  createBulkhead,
} from './bulkhead.js'
import { WorkerThreads } from './worker-threads.js'

/** Options of `createWorkerBulkhead()`. */
export interface WorkerBulkheadOptions extends Omit<BulkheadOptions, 'graceMs'> {
  /**
   * The module that each thread loads; its default export is the work. A file URL or absolute path.
   */
  file: URL | string
  /**
   * Longest time for one piece of work, after which its thread is stopped. Range: from 1 ms. Default: no limit.
   */
  callMs?: Duration
}

/** Runs functions of a module in worker threads. Created by `createWorkerBulkhead()`. */
export interface WorkerBulkhead extends Readonly<BulkheadSnapshot> {
  /**
   * Runs the work on a thread. Input and result are copied between threads. `task` names an export
   * of the file other than the default.
   */
  run<T>(input: unknown, options?: { signal?: AbortSignal; task?: string }): Promise<T>
  /** State and counts at this moment. */
  snapshot(): BulkheadSnapshot
  /** Refuses new and waiting work; resolves when all threads have ended. */
  close(): Promise<void>
}

const readFile: Check<string> = (value, path, problems) => {
  if (value instanceof URL && value.protocol === 'file:') return value.href
  if (typeof value === 'string' && value.startsWith('file:')) return value
  if (typeof value === 'string' && isAbsolute(value)) return pathToFileURL(value).href
  problems.push({ path, message: `must be a file URL or an absolute path, got ${String(value)}` })
  return ''
}

const { graceMs: _, ...slotFields } = bulkheadFields

const readOptions = object({
  ...slotFields,
  file: readFile,
  callMs: optional(duration({ min: 1 })),
})

/**
 * Creates a bulkhead that runs functions of a module in worker threads. Needs the package `piscina`.
 *
 * @example
 * const images = createWorkerBulkhead({ file: new URL('./resize.js', import.meta.url), limit: 2 })
 * const small = await images.run(picture)
 */
export function createWorkerBulkhead(options: WorkerBulkheadOptions): WorkerBulkhead {
  const own = validate('workerBulkhead', options, readOptions)
  const { name, limit, queue, metrics, clock, callMs } = own
  const slots = createBulkhead({ name, limit, queue, clock, ...(metrics && { metrics }) })
  const timeout =
    callMs === undefined
      ? createDeadlineTimeout(name, clock)
      : createTimeout({ name, callMs, clock })
  const threads = new WorkerThreads(own.file, limit)

  return {
    name,
    limit,
    get active() {
      return slots.active
    },
    get waiting() {
      return slots.waiting
    },
    get available() {
      return slots.available
    },
    run<T>(
      input: unknown,
      { signal, task = 'default' }: { signal?: AbortSignal; task?: string } = {},
    ) {
      const options = signal && { signal }
      return slots.run(
        () => timeout.run((call) => threads.run<T>(input, task, call.signal), options),
        options,
      )
    },
    snapshot: () => slots.snapshot(),
    async close() {
      await slots.close()
      await threads.close()
    },
  }
}

/** Worker bulkheads by name. */
export type WorkerBulkheadRegistry = Registry<WorkerBulkhead, Omit<WorkerBulkheadOptions, 'name'>>

/**
 * Creates worker bulkheads by name, each with its own threads.
 *
 * @example
 * const pools = createWorkerBulkheadRegistry({ file, limit: 2 })
 * await pools.get('images').run(picture)
 */
export function createWorkerBulkheadRegistry(
  defaults: Omit<WorkerBulkheadOptions, 'name'>,
): WorkerBulkheadRegistry {
  createWorkerBulkhead(defaults)
  return createRegistry(defaults, createWorkerBulkhead)
}
