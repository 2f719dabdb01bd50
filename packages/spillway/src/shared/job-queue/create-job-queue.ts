/**
 * A job queue for processes that only add or manage jobs and have no guard. Such a process is no
 * member of the fleet. Workers use `spillway.jobQueue(name, { guard })`.
 */
import { object, text, validate } from '../../core/options/checks.js'
import { systemRandom } from '../../core/random.js'
import type { Store } from '../../store/port.js'
import { readStore } from '../store-option.js'
import type { JobQueue } from './api.js'
import { SharedJobQueue } from './job-queue.js'
import { type JobQueueSettings, settingFields, toUs } from './options.js'

/** Limits and attempts apply to jobs that are added here. */
export interface StandaloneJobQueueOptions extends Omit<JobQueueSettings, 'lane'> {
  /** The store that keeps the jobs. */
  store: Store
  /** The name of the queue, as its workers have it. */
  name: string
  /** The name of the workers' guard. */
  guard: string
}

const { lane: _, ...fields } = settingFields
const readOptions = object({ ...fields, store: readStore, name: text(), guard: text() })

/**
 * Creates access to a job queue for a process that only adds and manages jobs. Without a guard, costs are not
 * checked and users are not charged.
 *
 * @example
 * const emails = createJobQueue({ store, name: 'emails', guard: 'mail' })
 * await emails.add({ to: 'ann@example.com' })
 */
export function createJobQueue<Data = unknown, Result = unknown>(
  options: StandaloneJobQueueOptions,
): JobQueue<Data, Result> {
  const { store, name, guard, ...own } = validate('jobQueue', options, readOptions)
  const settings = { ...own, lane: undefined }
  return new SharedJobQueue<Data, Result>({
    ref: { guard, queue: name, lifeUs: toUs(settings.forgetMs) },
    store: store.queues,
    settings,
    checkCost: () => {},
    charge: async () => () => {},
    random: systemRandom,
  })
}
