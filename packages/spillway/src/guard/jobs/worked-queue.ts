/** A queue with its guard: what is added to it is worked on by whoever calls `work`. */
import { closedError } from '../../core/errors.js'
import {
  type Duration,
  duration,
  func,
  integer,
  object,
  optional,
  validate,
} from '../../core/options.js'
import type { Random } from '../../core/random.js'
import { type BackoffPolicy, backoffFields } from '../../local/backoff.js'
import { SharedJobQueue } from '../../shared/job-queue/job-queue.js'
import { type CheckedSettings, settingFields, toUs } from '../../shared/job-queue/options.js'
import type { QueueStore } from '../../store/queue-port.js'
import type { JobHandler, JobQueueOptions, JobWorker, WorkableQueue, WorkOptions } from './api.js'
import type { JobGate } from './job-gate.js'
import { QueueWorker } from './worker.js'

const DEFAULT_GRACE_MS = 30_000

const readQueue = object({
  ...settingFields,
  ...backoffFields,
  baseMs: optional(duration({ min: 1 }), 1_000),
  maxMs: optional(duration({ min: 1 }), 300_000),
})
const readWork = object({ concurrency: optional(integer({ min: 1 }), 10) })

export function checkQueue(
  name: string,
  { guard: _, ...settings }: JobQueueOptions,
): CheckedSettings & BackoffPolicy {
  return validate(`queue(${name})`, settings, readQueue)
}

export interface WorkedQueueOptions {
  name: string
  store: QueueStore
  settings: CheckedSettings & BackoffPolicy
  gate: JobGate
  pod: string
  random: Random
}

export function createWorkedQueue<Data, Result>({
  name,
  store,
  settings,
  gate,
  pod,
  random,
}: WorkedQueueOptions): WorkableQueue<Data, Result> {
  const ref = { guard: gate.guard, queue: name, lifeUs: toUs(settings.forgetMs) }
  const workers = new Set<QueueWorker<Data, Result>>()
  let made = 0
  let closed = false

  function work(handler: JobHandler<Data, Result>, options: WorkOptions = {}): JobWorker {
    validate('handler', handler, func())
    const { concurrency } = validate('work', options, readWork)
    if (closed) throw closedError('room', name)
    const worker = new QueueWorker<Data, Result>({
      id: `${pod}:${name}:${++made}`,
      ref,
      store,
      gate,
      settings,
      handler,
      concurrency,
      clock: gate.clock,
      random,
      onClosed: () => workers.delete(worker),
    })
    workers.add(worker)
    return {
      id: worker.id,
      snapshot: () => worker.snapshot(),
      close: (own = {}) => worker.close({ graceMs: graceOf(own) }),
    }
  }

  const checkCost = (cost: Readonly<Record<string, number>>) => gate.checkCost(cost)
  const jobs = new SharedJobQueue<Data, Result>({ ref, store, settings, checkCost })
  return {
    name,
    add: (data, options) => jobs.add(data, options),
    addMany: (many) => jobs.addMany(many),
    job: (id) => jobs.job(id),
    cancel: (id) => jobs.cancel(id),
    counts: () => jobs.counts(),
    pause: () => jobs.pause(),
    resume: () => jobs.resume(),
    dead: (range) => jobs.dead(range),
    replay: (id) => jobs.replay(id),
    drop: (id) => jobs.drop(id),
    work,
    async close(options = {}) {
      closed = true
      const graceMs = graceOf(options)
      await Promise.all(Array.from(workers, (worker) => worker.close({ graceMs })))
    },
  }
}

function graceOf({ graceMs = DEFAULT_GRACE_MS }: { graceMs?: Duration }): number {
  return validate('graceMs', graceMs, duration({ min: 0 }))
}
