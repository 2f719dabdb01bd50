/**
 * A fallback that adds the call to a job queue. Workers run the job when the downstream allows it,
 * and the caller gets a ticket. Not for results that are useless later, and not for calls that may
 * have been executed already, such as one that timed out.
 */
import { either, func, having, object, optional, validate } from '../core/options/checks.js'
import type { FailedCall, FallbackStep } from '../guard/stages/fallback.js'
import type { AddedJob, JobOptions, JobQueue } from '../shared/job-queue/api.js'
import { type StepOptions, stepFields } from './step-options.js'

/** The result that a caller gets in place of a response. */
export interface EnqueuedJob extends AddedJob {
  /** Name of the job queue. */
  queue: string
}

type Adds<Data> = Pick<JobQueue<Data>, 'name' | 'add'>

/** Options of the fallback `enqueue()`. */
export interface EnqueueOptions<Data = unknown> extends StepOptions {
  /**
   * The queue, or a function that returns it, because a guard's own queue is created after the
   * guard.
   */
  queue: Adds<Data> | (() => Adds<Data>)
  /** Input of the job; undefined: no job is added for this call. Default: the call's `job`. */
  data?: (call: FailedCall) => Data | undefined
  /**
   * Further options of the job. Default: the priority and the cost of the call, its user as the
   * tenant, and its idempotency key.
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

/**
 * Adds the call to a job queue.
 *
 * @example
 * const fallback = [enqueue({ queue: emails, data: ({ options }) => options.job })]
 */
export function enqueue<Data>(options: EnqueueOptions<Data>): FallbackStep
/** Passes the call to a function and returns its result, such as a ticket. */
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
    // A job is a delayed call, so it must not bypass a user limit that is used up.
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
