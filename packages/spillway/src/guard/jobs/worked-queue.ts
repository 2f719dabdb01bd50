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

export interface WorkedQueueOptions {
  name: string
  store: QueueStore
  settings: CheckedSettings & BackoffPolicy
  jobLane: JobLane
  pod: string
  random: Random
  /** No more work is begun here. */
  onClosed(): void
}

/** Internal methods for the Spillway that owns the queue. */
export interface WorkedQueue<Data, Result> extends WorkableJobQueue<Data, Result> {
  /** The guard was replaced: later jobs use this lane of the new guard. Running jobs end with the old one. */
  follow(jobLane: JobLane): void
  /** The name of `jobStatus` before the first release. */
  standing(): never
}

export function createWorkedQueue<Data, Result>({
  name,
  store,
  settings,
  pod,
  random,
  onClosed,
  ...given
}: WorkedQueueOptions): WorkedQueue<Data, Result> {
  let jobLane = given.jobLane
  const ref = { guard: jobLane.guard, queue: name, lifeUs: toUs(settings.forgetMs) }
  const workers = new Set<QueueWorker<Data, Result>>()
  /** The arguments of `work`, and the current worker. */
  const posts = new Set<{ relieve(): void }>()
  const ended = noWork()
  const came = { added: 0, refused: 0 }
  let made = 0
  let closed = false

  function work(handler: JobHandler<Data, Result>, options: WorkOptions = {}): JobWorker {
    validate('handler', handler, func())
    const { concurrency } = validate('work', options, readWork)
    if (closed) throw closedError('queue', name)
    let worker = hire(handler, concurrency)
    /** Workers that finish their jobs with an older guard. */
    const relieved = new Set<QueueWorker<Data, Result>>()
    const post = {
      relieve() {
        const before = worker
        worker = hire(handler, concurrency)
        relieved.add(before)
        void before.close({ graceMs: LONGEST_GRACE_MS }).then(() => relieved.delete(before))
      },
    }
    posts.add(post)
    return {
      get id() {
        return worker.id
      },
      snapshot: () => worker.snapshot(),
      async close(own = {}) {
        posts.delete(post)
        const graceMs = graceOf(own)
        await Promise.all(Array.from([worker, ...relieved], (each) => each.close({ graceMs })))
      },
    }
  }

  function hire(handler: JobHandler<Data, Result>, concurrency: number): QueueWorker<Data, Result> {
    const worker = new QueueWorker<Data, Result>({
      id: `${pod}:${name}:${++made}`,
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
        came.added++
        if (listening()) emit({ type: 'job.added', name, id, priority: priorityOf(index) })
      }
    }
    try {
      const added = await add
      count(added)
      return added
    } catch (error) {
      if (error instanceof QueueFullError) {
        came.refused++
        count(error.added)
        const { size, maxSize } = error.details as { size: number; maxSize: number }
        if (listening()) emit({ type: 'job-queue.full', name, size, maxSize })
      }
      throw error
    }
  }

  /** Reports a pause or its end as an event. */
  async function turn(
    type: 'job-queue.paused' | 'job-queue.resumed',
    turned: Promise<void>,
  ): Promise<void> {
    await turned
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
      ...came,
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
    pause: () => turn('job-queue.paused', jobs.pause()),
    resume: () => turn('job-queue.resumed', jobs.resume()),
    dead: (range) => jobs.dead(range),
    replay: (id) => jobs.replay(id),
    drop: (id) => jobs.drop(id),
    snapshot,
    work,
    follow(next) {
      jobLane = next
      for (const post of posts) post.relieve()
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
