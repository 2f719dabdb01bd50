/**
 * A durable queue of jobs that all pods share: adding and managing jobs. Workers belong to a guard,
 * because a job is taken together with the permits of its call. Not for work that a caller waits
 * for: that is what a guard's queue is for.
 */

import { readableTime, SpillwayError, STORE_WAIT_MS, storeUnavailable } from '../../core/errors.js'
import { callSafely } from '../../core/events.js'
import { boundedName } from '../../core/long-name.js'
import { func, OptionsError, text, validate } from '../../core/options/checks.js'
import { PRIORITIES, type Priority } from '../../core/options/priority.js'
import type { Random } from '../../core/random.js'
import type { JobView, NewJob, QueueRef, QueueStore, TenantDepths } from '../../store/queue-port.js'
import type { Subject } from '../user-limits/levels.js'
import type {
  AddedJob,
  AddOptions,
  JobCounts,
  JobInfo,
  JobOptions,
  JobQueue,
  JobStatus,
  TenantCounts,
} from './api.js'
import {
  type CheckedSettings,
  maxPerTenantOf,
  readAdd,
  readCountsOptions,
  readJob,
  toUs,
} from './options.js'
import { QueueFullError } from './queue-full-error.js'

export interface SharedJobQueueOptions {
  ref: QueueRef
  store: QueueStore
  settings: CheckedSettings
  /** Throws if a job's cost has a unit without a limit. */
  checkCost(cost: Readonly<Record<string, number>>): void
  /** Charges a user's limits, or throws. Returns a function that refunds them. */
  charge(subject: Subject): Promise<() => void>
  random: Random
}

/** Most jobs added in one step. */
const MOST_IN_A_STEP = 200
const DEAD_LISTED = 100

export class SharedJobQueue<Data, Result> implements JobQueue<Data, Result> {
  readonly name: string
  readonly #options: SharedJobQueueOptions
  readonly #ref: QueueRef

  constructor(options: SharedJobQueueOptions) {
    this.name = options.ref.queue
    this.#options = options
    this.#ref = options.ref
  }

  async add(data: Data, options: AddOptions = {}): Promise<AddedJob> {
    const { as, ...own } = validate('job', options, readAdd)
    const jobs = [this.#write(data, own, 'job')]
    if (as === undefined) return (await this.#add(jobs))[0] as AddedJob
    const refund = await this.#options.charge(as)
    try {
      const [added] = await this.#add(jobs)
      if (added?.fresh === false) refund()
      return added as AddedJob
    } catch (error) {
      // If it is unknown whether the job was added, it counts as added.
      if (error instanceof SpillwayError && error.code === 'QUEUE_FULL') refund()
      throw error
    }
  }

  async addMany(jobs: readonly ({ data: Data } & JobOptions)[]): Promise<AddedJob[]> {
    const read = jobs.map(({ data, ...options }, index) =>
      this.#write(data, validate(`jobs[${index}]`, options, readJob), `jobs[${index}]`),
    )
    const added: AddedJob[] = []
    for (let from = 0; from < read.length; from += MOST_IN_A_STEP) {
      added.push(...(await this.#add(read.slice(from, from + MOST_IN_A_STEP), added)))
    }
    return added
  }

  async job(id: string): Promise<JobInfo<Data, Result> | undefined> {
    validate('id', id, text())
    const view = await this.#run((store) => store.job({ ...this.#ref, id }))
    return view && infoOf(view)
  }

  async jobStatus(id: string): Promise<JobStatus | undefined> {
    validate('id', id, text())
    const status = await this.#run((store) => store.jobStatus({ ...this.#ref, id }))
    if (status === undefined) return undefined
    const { state, attempt, progress, text: error } = status
    return { state, attempt, progress: parsed(progress), error: error || undefined }
  }

  /** The name of `jobStatus` before the first release. Not part of the interface. */
  standing(): never {
    throw new TypeError('queue.standing() was renamed: use queue.jobStatus()')
  }

  cancel(id: string): Promise<boolean> {
    validate('id', id, text())
    const keepUs = toUs(this.#options.settings.resultMs)
    return this.#run((store) =>
      store.command({ ...this.#ref, command: { kind: 'cancel', id, keepUs } }),
    )
  }

  watch(id: string, onChange: () => void): () => void {
    validate('id', id, text())
    const changed = validate('onChange', onChange, func<() => void>())
    const notify = () => callSafely(this.name, 'onChange', changed, undefined)
    const { guard, queue } = this.#ref
    return this.#options.store.watch({
      onChange: (change) => {
        if (change.id === id && change.queue === queue && change.guard === guard) notify()
      },
      onGap: notify,
    })
  }

  async counts(options: { tenants?: number } = {}): Promise<JobCounts> {
    const wanted = validate('counts', options, readCountsOptions)
    const read = await this.#run((store) => store.counts({ ...this.#ref, ...wanted }))
    const { oldestUs, byPriority, tenants, ...counts } = read
    return {
      ...counts,
      byPriority: named(byPriority),
      oldestMs: oldestUs / 1_000,
      ...(tenants !== undefined && { tenants: tenantsOf(tenants) }),
    }
  }

  async pause(): Promise<void> {
    await this.#run((store) => store.command({ ...this.#ref, command: { kind: 'pause' } }))
  }

  async resume(): Promise<void> {
    await this.#run((store) => store.command({ ...this.#ref, command: { kind: 'resume' } }))
  }

  async dead({ from = 0, count = DEAD_LISTED } = {}): Promise<JobInfo<Data, Result>[]> {
    const views = await this.#run((store) => store.dead({ ...this.#ref, from, count }))
    return views.map((view) => infoOf(view))
  }

  replay(id?: string): Promise<number> {
    return this.#forDead('replay', id)
  }

  drop(id?: string): Promise<number> {
    return this.#forDead('drop', id)
  }

  /** Handles as many as there are now; jobs that die meanwhile stay. */
  async #forDead(kind: 'replay' | 'drop', id: string | undefined): Promise<number> {
    const command = (each: string) =>
      this.#run((store) => store.command({ ...this.#ref, command: { kind, id: each } }))
    if (id !== undefined) return (await command(id)) ? 1 : 0
    let left = (await this.counts()).dead
    let done = 0
    while (left > 0) {
      const letters = await this.dead({ count: Math.min(left, DEAD_LISTED) })
      if (letters.length === 0) break
      const answers = await Promise.all(letters.map((letter) => command(letter.id)))
      done += answers.filter(Boolean).length
      left -= letters.length
    }
    return done
  }

  #write(data: Data, options: ReturnType<typeof readJob>, path: string): NewJob {
    const { priority, delayMs, timeoutMs, key, tenant, cost, attempts } = options
    this.#options.checkCost(cost)
    const written = JSON.stringify(data)
    if (written === undefined) {
      const message = 'must be a value that JSON can represent, not undefined or a function'
      throw new OptionsError([{ path: `${path}.data`, message }])
    }
    return {
      data: written,
      priority: PRIORITIES.indexOf(priority),
      delayUs: toUs(delayMs),
      deadlineUs: timeoutMs === undefined ? 0 : toUs(timeoutMs),
      key: boundedName(key),
      tenant: boundedName(tenant),
      cost,
      attempts: attempts ?? this.#options.settings.attempts,
    }
  }

  /** `before`: jobs that earlier steps of the same call have added. */
  async #add(jobs: readonly NewJob[], before: readonly AddedJob[] = []): Promise<AddedJob[]> {
    const { settings, random } = this.#options
    const { durable, confirmMs: timeoutMs, maxSize } = settings
    const replicas = Number(durable)
    const maxPerTenant = maxPerTenantOf(settings)
    const request = { ...this.#ref, jobs, maxSize, maxPerTenant }
    const reply = await this.#run((store) =>
      store.add(replicas === 0 ? request : { ...request, durable: { replicas, timeoutMs } }),
    )
    if (reply.jobs.length < jobs.length) {
      const { tenant = '' } = jobs[reply.jobs.length] ?? {}
      const added = [...before, ...reply.jobs]
      const bounds = { name: this.name, maxSize, maxPerTenant }
      throw new QueueFullError({ ...bounds, tenant, reply, added, random })
    }
    if (reply.confirmed === false) throw this.#unconfirmedError(replicas, timeoutMs)
    return [...reply.jobs]
  }

  async #run<T>(command: (store: QueueStore) => T | Promise<T>): Promise<T> {
    try {
      return await command(this.#options.store)
    } catch (cause) {
      throw storeUnavailable('queue', this.name, cause)
    }
  }

  #unconfirmedError(replicas: number, confirmMs: number): SpillwayError {
    return new SpillwayError({
      code: 'STORE_UNAVAILABLE',
      stage: 'queue',
      scope: 'shared',
      retryAfterMs: STORE_WAIT_MS,
      details: { name: this.name, replicas, confirmMs },
      explain: (details) =>
        `queue ${details.name}: ${details.replicas} replicas did not confirm the job within ` +
        `${readableTime(details.confirmMs)}; it may be there nevertheless`,
    })
  }
}

function named(byPriority: readonly number[]): Record<Priority, number> {
  const entries = PRIORITIES.map((priority, index) => [priority, byPriority[index] ?? 0])
  return Object.fromEntries(entries)
}

function tenantsOf({ exact, top, others }: TenantDepths): TenantCounts {
  return {
    exact,
    top: top.map(({ tenant, byPriority }) => ({
      tenant: tenant || undefined,
      waiting: byPriority.reduce((sum, each) => sum + each, 0),
      byPriority: named(byPriority),
    })),
    others,
  }
}

function infoOf<Data, Result>(view: JobView): JobInfo<Data, Result> {
  const { id, state, attempt, attempts, progress, text: storedText } = view
  return {
    id,
    state,
    data: parsed(view.data) as Data,
    priority: PRIORITIES[view.priority] as Priority,
    tenant: view.tenant || undefined,
    key: view.key || undefined,
    attempt,
    attempts,
    ageMs: view.ageUs / 1_000,
    progress: parsed(progress),
    result: state === 'done' ? (parsed(storedText) as Result) : undefined,
    error: state === 'done' || storedText === '' ? undefined : storedText,
  }
}

/** Text that is not JSON was written by another program and is returned unchanged. */
function parsed(json: string): unknown {
  if (json === '') return undefined
  try {
    return JSON.parse(json)
  } catch {
    return json
  }
}
