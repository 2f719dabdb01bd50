/** A job queue with its guard, and the workers that `work` creates. */
import { closedError } from '../../core/errors.js'
import { emit, listening } from '../../core/events.js'
import {
  type Duration,
  duration,
  func,
  integer,
  object,
  optional,
  validate,
} from '../../core/options/checks.js'
import type { Priority } from '../../core/options/priority.js'
import type { Random } from '../../core/random.js'
import { type BackoffPolicy, backoffFields } from '../../local/retry/backoff.js'
import type { AddedJob } from '../../shared/job-queue/api.js'
import { SharedJobQueue } from '../../shared/job-queue/job-queue.js'
import { type CheckedSettings, settingFields, toUs } from '../../shared/job-queue/options.js'
import { QueueFullError } from '../../shared/job-queue/queue-full-error.js'
import type { Subject } from '../../shared/user-limits/levels.js'
import type { QueueStore } from '../../store/queue-port.js'
import type {
  JobHandler,
  JobQueueOptions,
  JobWorker,
  WorkableJobQueue,
  WorkOptions,
} from './api.js'
import type { JobLane } from './job-lane.js'
import { addWork, type JobQueueSnapshot, noWork } from './queue-snapshot.js'
import { QueueWorker } from './worker.js'

const DEFAULT_GRACE_MS = 30_000
/** The longest delay of a timer. */
const LONGEST_GRACE_MS = 2 ** 31 - 1

/** Options of a job queue except its guard, each with its check. */
export const jobQueueFields = {
  ...settingFields,
  ...backoffFields,
  baseMs: optional(duration({ min: 1 }), 1_000),
  maxMs: optional(duration({ min: 1 }), 300_000),
}

const readQueue = object(jobQueueFields)
const readWork = object({ concurrency: optional(integer({ min: 1 }), 10) })

export function checkQueue(
  name: string,
  { guard: _, ...settings }: JobQueueOptions,
): CheckedSettings & BackoffPolicy {
  return validate(`jobQueue(${name})`, settings, readQueue)
}

export interface GuardJobQueueOptions {
  name: string
  store: QueueStore
  settings: CheckedSettings & BackoffPolicy
  jobLane: JobLane
  pod: string
  random: Random
  /** The queue is closed and begins no more work. */
  onClosed(): void
}

/** Internal methods for the Spillway that owns the queue. */
export interface GuardJobQueue<Data, Result> extends WorkableJobQueue<Data, Result> {
  /** The guard was replaced: later jobs use this lane of the new guard. Running jobs end with the old one. */
  useJobLane(jobLane: JobLane): void
  /** The name of `jobStatus` before the first release. */
  standing(): never
}

export function createGuardJobQueue<Data, Result>({
  name,
  store,
  settings,
  pod,
  random,
  onClosed,
  ...others
}: GuardJobQueueOptions): GuardJobQueue<Data, Result> {
  let jobLane = others.jobLane
  const ref = { guard: jobLane.guard, queue: name, lifeUs: toUs(settings.forgetMs) }
  const workers = new Set<QueueWorker<Data, Result>>()
  /** One entry for each call of `work`; creates another worker when the guard is replaced. */
  const startedWorkers = new Set<{ replaceWorker(): void }>()
  const ended = noWork()
  const addCounts = { added: 0, refused: 0 }
  let workersCreated = 0
  let closed = false

  function work(handler: JobHandler<Data, Result>, options: WorkOptions = {}): JobWorker {
    validate('handler', handler, func())
    const { concurrency } = validate('work', options, readWork)
    if (closed) throw closedError('queue', name)
    let worker = createWorker(handler, concurrency)
    /** Workers that finish their jobs with an earlier guard. */
    const replacedWorkers = new Set<QueueWorker<Data, Result>>()
    const started = {
      replaceWorker() {
        const before = worker
        worker = createWorker(handler, concurrency)
        replacedWorkers.add(before)
        void before.close({ graceMs: LONGEST_GRACE_MS }).then(() => replacedWorkers.delete(before))
      },
    }
    startedWorkers.add(started)
    return {
      get id() {
        return worker.id
      },
      snapshot: () => worker.snapshot(),
      async close(own = {}) {
        startedWorkers.delete(started)
        const graceMs = graceOf(own)
        await Promise.all(
          Array.from([worker, ...replacedWorkers], (each) => each.close({ graceMs })),
        )
      },
    }
  }

  function createWorker(
    handler: JobHandler<Data, Result>,
    concurrency: number,
  ): QueueWorker<Data, Result> {
    const worker = new QueueWorker<Data, Result>({
      id: `${pod}:${name}:${++workersCreated}`,
      ref,
      store,
      jobLane,
      settings,
      handler,
      concurrency,
      clock: jobLane.clock,
      random,
      onClosed: () => {
        workers.delete(worker)
        addWork(ended, worker.snapshot())
      },
    })
    workers.add(worker)
    return worker
  }

  const checkCost = (cost: Readonly<Record<string, number>>) => jobLane.checkCost(cost)
  const charge = (subject: Subject) => jobLane.charge(subject)
  const jobs = new SharedJobQueue<Data, Result>({ ref, store, settings, checkCost, charge, random })

  /** Counts new jobs, and jobs that were refused because the queue is full. */
  async function adding<T extends readonly AddedJob[]>(
    add: Promise<T>,
    priorityOf: (index: number) => Priority = () => 'normal',
  ): Promise<T> {
    const count = (jobs: readonly AddedJob[]) => {
      for (const [index, { id, fresh }] of jobs.entries()) {
        if (!fresh) continue
        addCounts.added++
        if (listening()) emit({ type: 'job.added', name, id, priority: priorityOf(index) })
      }
    }
    try {
      const added = await add
      count(added)
      return added
    } catch (error) {
      if (error instanceof QueueFullError) {
        addCounts.refused++
        count(error.added)
        const { size, maxSize } = error.details as { size: number; maxSize: number }
        if (listening()) emit({ type: 'job-queue.full', name, size, maxSize })
      }
      throw error
    }
  }

  /** Reports a pause or its end as an event. */
  async function emitAfter(
    type: 'job-queue.paused' | 'job-queue.resumed',
    command: Promise<void>,
  ): Promise<void> {
    await command
    if (listening()) emit({ type, name })
  }

  function snapshot(): JobQueueSnapshot {
    const sum = { ...ended }
    for (const worker of workers) addWork(sum, worker.snapshot())
    return {
      name,
      guard: jobLane.guard,
      lane: jobLane.lane,
      workers: workers.size,
      ...addCounts,
      ...sum,
    }
  }

  return {
    name,
    add: async (data, options) => {
      const one = jobs.add(data, options).then((added) => [added] as const)
      return (await adding(one, () => options?.priority ?? 'normal'))[0]
    },
    addMany: (many) => adding(jobs.addMany(many), (index) => many[index]?.priority ?? 'normal'),
    job: (id) => jobs.job(id),
    jobStatus: (id) => jobs.jobStatus(id),
    standing: () => jobs.standing(),
    cancel: (id) => jobs.cancel(id),
    watch: (id, onChange) => jobs.watch(id, onChange),
    counts: (options) => jobs.counts(options),
    pause: () => emitAfter('job-queue.paused', jobs.pause()),
    resume: () => emitAfter('job-queue.resumed', jobs.resume()),
    dead: (range) => jobs.dead(range),
    replay: (id) => jobs.replay(id),
    drop: (id) => jobs.drop(id),
    snapshot,
    work,
    useJobLane(next) {
      jobLane = next
      for (const started of startedWorkers) started.replaceWorker()
    },
    async close(options = {}) {
      if (!closed) onClosed()
      closed = true
      const graceMs = graceOf(options)
      await Promise.all(Array.from(workers, (worker) => worker.close({ graceMs })))
    },
  }
}

function graceOf({ graceMs = DEFAULT_GRACE_MS }: { graceMs?: Duration }): number {
  return validate('graceMs', graceMs, duration({ min: 0 }))
}
