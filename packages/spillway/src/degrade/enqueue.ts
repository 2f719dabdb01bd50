/**
 * A place in a queue as a fallback: accepted, will be done later. The job belongs to a job queue, whose
 * workers do it when the downstream lets them; what the caller gets is its ticket. Not for what nobody
 * wants later, and not for calls that may have been done already: a call that timed out may have been.
 */
import { either, func, having, object, optional, validate } from '../core/options/checks.js'
import type { FailedCall, FallbackStep } from '../guard/stages/fallback.js'
import type { AddedJob, JobOptions, JobQueue } from '../shared/job-queue/api.js'
import { type StepOptions, stepFields } from './step-options.js'

/** What a caller gets in place of an answer. */
export interface EnqueuedJob extends AddedJob {
  queue: string
}

type Adds<Data> = Pick<JobQueue<Data>, 'name' | 'add'>

export interface EnqueueOptions<Data = unknown> extends StepOptions {
  /** Where it goes, or a function that says so: a queue of the guard itself is made after the guard. */
  queue: Adds<Data> | (() => Adds<Data>)
  /** What the job needs to know; nothing: there is no job for this call. Default: the call's `job`. */
  data?: (call: FailedCall) => Data | undefined
  /**
   * What else is said of the job. Default: the priority and the cost of the call, its user as the tenant,
   * and its idempotency key.
   */
  options?: (call: FailedCall) => JobOptions
}

const readHook = object(stepFields)
const readBound = object({
  ...stepFields,
  queue: either(having<Adds<unknown>>('a job queue', 'add'), func<() => Adds<unknown>>()),
  data: optional(func<(call: FailedCall) => unknown>(), ({ options }: FailedCall) => options.job),
  options: optional(func<(call: FailedCall) => JobOptions>(), usualOptions),
})

const MESSAGE = 'accepted, will be done later'

/** Makes a job of the call, in a job queue. */
export function enqueue<Data>(options: EnqueueOptions<Data>): FallbackStep
/** Hands the call to a function, and gives what that answers with, such as a ticket. */
export function enqueue<T>(
  hook: (call: FailedCall) => T | PromiseLike<T>,
  options?: StepOptions,
): FallbackStep
export function enqueue(
  given: EnqueueOptions<unknown> | ((call: FailedCall) => unknown),
  options: StepOptions = {},
): FallbackStep {
  return typeof given === 'function' ? byHook(given, options) : byQueue(given)
}

function byHook(hook: (call: FailedCall) => unknown, options: StepOptions): FallbackStep {
  const { name = 'enqueue', on } = validate('enqueue', options, readHook)
  return {
    name,
    on,
    async answer(call) {
      const value = await hook(call)
      return value === undefined ? undefined : { value, message: MESSAGE }
    },
  }
}

function byQueue(given: EnqueueOptions<unknown>): FallbackStep {
  const { name = 'enqueue', on, queue, data, options } = validate('enqueue', given, readBound)
  return {
    name,
    on,
    // A job is a call, only later: who has used up a limit of theirs does not get around it.
    costs: true,
    async answer(call) {
      const job = data(call)
      if (job === undefined) return undefined
      const jobs = typeof queue === 'function' ? queue() : queue
      const added = await jobs.add(job, options(call))
      const value: EnqueuedJob = { queue: jobs.name, ...added }
      return { value, message: MESSAGE }
    },
  }
}

function usualOptions({ options }: FailedCall): JobOptions {
  const { priority, cost, user, idempotencyKey } = options
  return {
    ...(priority !== undefined && { priority }),
    ...(cost !== undefined && { cost }),
    ...(user !== undefined && { tenant: user }),
    ...(idempotencyKey !== undefined && { key: idempotencyKey }),
  }
}
