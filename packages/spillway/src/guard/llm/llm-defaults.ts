/** Guard options that suit LLM vendors, for applications that have no special needs. */
import {
  type Check,
  integer,
  type OptionProblem,
  object,
  optional,
  validate,
} from '../../core/options/checks.js'
import type { SharedLimit } from '../../shared/rate-limiter/options.js'
import type { GuardOptions } from '../options.js'

/** Your contract with the vendor, for all pods together and for each model. */
export interface LlmLimits {
  /** Requests per minute of each model, of all pods together. Range: integers from 1. Default: no limit. */
  requestsPerMinute?: number
  /**
   * Input and output tokens per minute together, as OpenAI counts them. Range: integers from 1. Default: no
   * limit.
   */
  tokensPerMinute?: number
  /** Input tokens per minute, as Anthropic counts them. Range: integers from 1. Default: no limit. */
  inputTokensPerMinute?: number
  /** Output tokens per minute, as Anthropic counts them. Range: integers from 1. Default: no limit. */
  outputTokensPerMinute?: number
  /**
   * Calls at once in this pod. Range: integers from 1. Default: enough for the whole `requestsPerMinute` with
   * answers of 30 seconds, from 50 to 1,000.
   */
  concurrency?: number
}

/** What `llmDefaults` returns: guard options in which these stages are set. */
export type LlmGuardOptions = GuardOptions &
  Required<Pick<GuardOptions, 'shed' | 'queue' | 'breaker' | 'concurrency' | 'timeout' | 'retry'>>

const UNITS = {
  requestsPerMinute: 'requests',
  tokensPerMinute: 'tokens',
  inputTokensPerMinute: 'inputTokens',
  outputTokensPerMinute: 'outputTokens',
} as const

const readCount = integer({ min: 1 })

const readPerMinute: Check<number> = (value, path, problems) =>
  Number.isNaN(value) ? unset(value, path, problems) : readCount(value, path, problems)

const readFields = object({
  requestsPerMinute: optional(readPerMinute),
  tokensPerMinute: optional(readPerMinute),
  inputTokensPerMinute: optional(readPerMinute),
  outputTokensPerMinute: optional(readPerMinute),
  concurrency: optional(readCount),
})

/** A limit that is given as undefined is an error, so that a missing environment variable is not taken for no limit. */
const readLimits: typeof readFields = (value, path, problems) => {
  for (const option of Object.keys(UNITS)) {
    if (Object.hasOwn(Object(value), option) && Object(value)[option] === undefined) {
      unset(undefined, `${path}.${option}`, problems)
    }
  }
  return readFields(value, path, problems)
}

function unset(value: unknown, path: string, problems: OptionProblem[]): never {
  const remedy = 'set the variable that it comes from, or leave the option out for no limit'
  problems.push({ path, message: `must be a positive integer, got ${value}; ${remedy}` })
  // The value is never used: `validate` throws.
  return undefined as never
}

const QUEUE_TIMEOUT_MS = 10_000
/** A long answer. Most take less, so the concurrency is not what limits a pod. */
const ANSWER_SECONDS = 30
const FEWEST_CALLS = 50
const MOST_CALLS = 1_000
/** Beyond this part of the queue only critical calls are queued. */
const SHED_AT = 0.9

/**
 * Returns guard options that suit LLM vendors: shared limits, a circuit breaker, a queue, load shedding,
 * timeouts that allow long answers, and retries with a budget. The result is an ordinary object: spread it
 * and change what you need. Without `limits` the guard has no limit: set at least one of those in your contract.
 *
 * @param limits your contract with the vendor; unknown names, invalid numbers and limits that are `undefined` throw an
 *   `OptionsError`
 * @example
 * const guard = spillway.guard('openai', {
 *   ...llmDefaults({ requestsPerMinute: 500, tokensPerMinute: 90_000 }),
 *   userLimits: [{ per: 'user', limit: 20, windowMs: '1m' }],
 * })
 */
export function llmDefaults(limits: LlmLimits = {}): LlmGuardOptions {
  const checked = validate('llmDefaults', limits, readLimits)
  const { requestsPerMinute = 0 } = checked
  const concurrency =
    checked.concurrency ?? withinBounds(Math.ceil((requestsPerMinute * ANSWER_SECONDS) / 60))
  const startsWithinQueueTimeout = (requestsPerMinute * QUEUE_TIMEOUT_MS) / 60_000
  const queueSize = withinBounds(Math.ceil(startsWithinQueueTimeout))
  const shared = Object.entries(UNITS).flatMap(([option, unit]): SharedLimit[] => {
    const perMinute = checked[option as keyof typeof UNITS]
    return perMinute === undefined ? [] : [{ unit, limit: perMinute, windowMs: '1m' }]
  })
  return {
    shed: { maxQueue: Math.floor(queueSize * SHED_AT), priorities: true },
    queue: { size: queueSize, timeoutMs: QUEUE_TIMEOUT_MS },
    // Short at first, because most incidents of vendors are; longer each time the probes fail.
    breaker: { failureRate: 0.5, windowMs: '30s', openMs: '10s', openFactor: 2, maxOpenMs: '2m' },
    // A sliding window never exceeds the limit, whether the vendor counts in windows or in a token bucket.
    ...(shared.length > 0 && { limits: shared }),
    concurrency: { limit: concurrency },
    // An answer in one piece begins when it is complete, and models that reason are silent for long.
    timeout: { callMs: '2m', firstByteMs: '2m', idleMs: '1m' },
    // As the SDKs of OpenAI and Anthropic wait between their own retries.
    retry: { attempts: 3, baseMs: '500ms', maxMs: '8s', budget: 0.2 },
  }
}

function withinBounds(calls: number): number {
  return Math.min(MOST_CALLS, Math.max(FEWEST_CALLS, calls))
}
