/**
 * A job queue for whoever only adds jobs to it, or looks after them, and has no guard: it belongs to the
 * fleet no more than a look at it does. Those who work on them call `spillway.queue(name, { guard })`.
 */
import { object, text, validate } from '../../core/options/checks.js'
import type { Store } from '../../store/port.js'
import { readStore } from '../store-option.js'
import type { JobQueue } from './api.js'
import { SharedJobQueue } from './job-queue.js'
import { type JobQueueSettings, settingFields, toUs } from './options.js'

/** What is said of limits and attempts goes for jobs that are added here. */
export interface DistantQueueOptions extends Omit<JobQueueSettings, 'lane'> {
  store: Store
  /** As those call it who work on it. */
  name: string
  /** The name of the guard they go by. */
  guard: string
}

const { lane: _, ...fields } = settingFields
const readOptions = object({ ...fields, store: readStore, name: text(), guard: text() })

/** Costs are checked, and users charged, by nobody here. */
export function createJobQueue<Data = unknown, Result = unknown>(
  options: DistantQueueOptions,
): JobQueue<Data, Result> {
  const { store, name, guard, ...own } = validate('jobQueue', options, readOptions)
  const settings = { ...own, lane: undefined }
  return new SharedJobQueue<Data, Result>({
    ref: { guard, queue: name, lifeUs: toUs(settings.forgetMs) },
    store: store.queues,
    settings,
    checkCost: () => {},
    charge: async () => () => {},
  })
}
