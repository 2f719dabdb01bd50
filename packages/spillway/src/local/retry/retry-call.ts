/** One call that may be retried: its attempts, and the decision after each. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { CallerSignal } from '../../core/abort.js'
import { discardResult } from '../../core/discard.js'
import { closedError, refuse, type SpillwayError } from '../../core/errors.js'
import { callSafely, emit, listening, type StopReason } from '../../core/events.js'
import { noteRetried } from '../../core/hops.js'
import {
  type CallEnd,
  isResponse,
  judge,
  type OutcomeOptions,
  type Verdict,
} from '../../core/outcome.js'
import type { Random } from '../../core/random.js'
import { isThenable, toPromise } from '../../core/thenable.js'
import type { Clock } from '../../core/time/clock.js'
import { currentDeadline, type Deadline, deadlineError } from '../../core/time/deadline.js'
import { sleep } from '../../core/time/sleep.js'
import { type Attempt, carryAttempts } from './attempts.js'
import { type BackoffPolicy, backoffMs } from './backoff.js'
import type { RetryBudget, RetryConditions } from './retry-budget.js'
import { decideRetry, type RetryDecision } from './retry-decision.js'

/** What a retried function receives. */
export interface RetryContext {
  /** 1 for the first attempt. */
  readonly attempt: number
  /** The caller's signal. */
  readonly signal: AbortSignal | undefined
}

/** A function that may be repeated. */
export type RetryFunction<T> = (context: RetryContext) => T | PromiseLike<T>

/** Options of one retried call. */
export interface RetryRunOptions {
  /** Aborts the call, also between two attempts. Default: none. */
  signal?: AbortSignal
  /** False: repeating the call could do harm, so it is retried only with a key. Default: true. */
  idempotent?: boolean
  /** A key by which the downstream recognises a repeated call. Default: none. */
  idempotencyKey?: string
  /** Called before each retry, before the budget; false prevents the retry. Default: always true. */
  mayRetry?: () => boolean
}

/** For a guard, which makes the attempts itself and has already judged them. */
export interface JudgedRunOptions extends Omit<RetryRunOptions, 'signal'> {
  signal?: CallerSignal
  judged?: () => Verdict | undefined
  /** How busy the pod is apart from this call, and how often calls like it fail. Default: as the budget knows. */
  conditions?: () => RetryConditions
}

/** Settings that all calls of one retry share. */
export interface RetryPolicy extends BackoffPolicy {
  name: string
  attempts: number
  budget: RetryBudget | undefined
  maxRetryAfterMs: number
  classify: OutcomeOptions['classify'] | undefined
  clock: Clock
  random: Random
  /** Usual duration of a successful attempt, learnt from calls with a deadline. */
  usualMs: number
  /** Whether a response says that a service further down has already retried. Default: never. */
  retriedBelow?: (value: unknown) => boolean
  /** Wakes calls that wait for a retry when nothing new should begin. Default: never. */
  closing?: Closing
  /** False: the function makes no calls with retries of their own, so its attempts need no scope. Default: true. */
  nested?: boolean
}

export interface Closing {
  readonly closed: boolean
  /** Waits `delayMs` or until it closes; rejects when the signal is aborted. */
  sleep(delayMs: number, signal: CallerSignal | undefined): Promise<void>
}

type End<T> = { value: T } | { error: unknown }

export class RetryCall<T> {
  readonly #policy: RetryPolicy
  readonly #fn: RetryFunction<T>
  readonly #options: JudgedRunOptions
  readonly #deadline: Deadline | undefined
  /** Collects every attempt for `tryRun`; otherwise only failures are noted. */
  readonly #report: Attempt[] | undefined
  #attempt = 1
  /** Scope of this attempt; undefined if a retry is impossible anyway. */
  #scope: AttemptScope | undefined
  #startMs = 0
  /** The wait before this attempt. */
  #delayMs = 0

  constructor(
    policy: RetryPolicy,
    fn: RetryFunction<T>,
    options: JudgedRunOptions,
    report: Attempt[] | undefined,
    deadline: Deadline | undefined = currentDeadline(),
  ) {
    this.#policy = policy
    this.#fn = fn
    this.#options = options
    this.#report = report
    this.#deadline = deadline
  }

  /** Makes the first attempt. Nearly every call ends here, so this is no async function. */
  start(): Promise<T> {
    const { signal } = this.#options
    const { name, budget } = this.#policy
    if (signal?.aborted) return refuse(signal.reason)
    if (this.#deadline?.expired) return refuse(deadlineError('retry', name))
    if (budget !== undefined) {
      callSafely(name, 'budget', () => budget.recordRequest(), undefined)
    }
    let result: T | PromiseLike<T>
    try {
      result = this.#call()
      if (!isThenable(result)) return Promise.resolve(this.#ended(result))
    } catch (error) {
      return this.#retryUntilFinal({ error })
    }
    return toPromise(result).then(
      (value) => this.#ended(value),
      (error) => this.#retryUntilFinal({ error }),
    )
  }

  /**
   * Continues after a first attempt that the guard made: when it began, and the scope it ran in.
   */
  resume(firstEnd: End<T>, startMs: number, scope: AttemptScope | undefined): Promise<T> {
    this.#startMs = startMs
    this.#scope = scope
    return this.#retryUntilFinal(firstEnd)
  }

  #call(): T | PromiseLike<T> {
    this.#startMs = this.#policy.clock.now()
    // Only a guard passes a lighter signal, and it makes the attempts itself.
    const signal = this.#options.signal as AbortSignal | undefined
    const context = { attempt: this.#attempt, signal }
    if (this.#policy.attempts === 1 || this.#policy.nested === false) return this.#fn(context)
    this.#scope = { givenUp: undefined }
    return runInScope(this.#scope, this.#fn, context)
  }

  #ended(value: T): T | Promise<T> {
    const plain =
      this.#report === undefined &&
      this.#deadline === undefined &&
      this.#policy.classify === undefined &&
      !isResponse(value)
    return plain ? value : this.#retryUntilFinal({ value })
  }

  /** Judges the end of an attempt and makes further ones until one is final. */
  async #retryUntilFinal(firstEnd: End<T>): Promise<T> {
    const attempts = this.#report ?? []
    const { signal } = this.#options
    for (let end = firstEnd; ; end = await this.#again()) {
      const durationMs = this.#policy.clock.now() - this.#startMs
      const verdict = this.#options.judged?.() ?? this.#judge({ ...end, durationMs, signal })
      attempts.push(this.#describe(end, durationMs, verdict))
      if ('value' in end && !verdict.retryable) {
        learnUsual(this.#policy, durationMs)
        return end.value
      }
      const decision = this.#decide(verdict, end)
      this.#emitDecision(decision, end)
      if (!decision.retry) return this.#conclude(end, attempts)
      // An unread body would keep its connection during the wait.
      const discarded = 'value' in end && discardResult(end.value)
      await this.#pause(decision.delayMs)
      const refusal = this.#refusalAfterPause()
      if (refusal === undefined) continue
      // A response whose body was cancelled is of no use to the caller.
      return this.#conclude(discarded ? { error: refusal } : end, attempts)
    }
  }

  /** No attempt follows the wait: its timer was late for the deadline, or the mechanism was closed meanwhile. */
  #refusalAfterPause(): SpillwayError | undefined {
    const { name, closing } = this.#policy
    const closed = closing?.closed === true
    if (!closed && this.#deadline?.expired !== true) return undefined
    const refusal = closed ? closedError('retry', name) : deadlineError('retry', name)
    this.#emitDecision(
      { retry: false, because: closed ? 'closed' : 'deadline' },
      { error: refusal },
    )
    return refusal
  }

  async #pause(delayMs: number): Promise<void> {
    const { signal } = this.#options
    this.#delayMs = delayMs
    try {
      const { closing, clock } = this.#policy
      await (closing === undefined ? sleep(clock, delayMs, signal) : closing.sleep(delayMs, signal))
      if (signal?.aborted) throw signal.reason
    } catch (error) {
      this.#emitDecision({ retry: false, because: 'aborted' }, { error })
      throw error
    }
  }

  #conclude(end: End<T>, attempts: readonly Attempt[]): T {
    if (this.#policy.attempts > 1) {
      noteRetried()
      noteGivenUp('value' in end ? end.value : end.error)
    }
    if ('value' in end) return end.value
    carryAttempts(end.error, attempts)
    throw end.error
  }

  #describe(end: End<T>, durationMs: number, { outcome }: Verdict): Attempt {
    const attempt = { attempt: this.#attempt, delayMs: this.#delayMs, durationMs, outcome }
    return 'error' in end ? { ...attempt, error: end.error } : attempt
  }

  async #again(): Promise<End<T>> {
    this.#attempt++
    try {
      return { value: await this.#call() }
    } catch (error) {
      return { error }
    }
  }

  #judge(end: CallEnd): Verdict {
    const { classify, clock, name } = this.#policy
    return judge(end, { name, wallMs: clock.wallMs(), ...(classify && { classify }) })
  }

  #decide(verdict: Verdict, end: End<T>): RetryDecision {
    const { attempts, maxRetryAfterMs, usualMs } = this.#policy
    const { idempotent, idempotencyKey, signal } = this.#options
    if (signal?.aborted) return { retry: false, because: 'aborted' }
    if (this.#policy.closing?.closed === true) return { retry: false, because: 'closed' }
    // Three tiers of three attempts each would make twenty-seven calls out of one.
    if (this.#retriedBelow(end)) return { retry: false, because: 'retried-below' }
    return decideRetry({
      verdict,
      attempt: this.#attempt,
      attempts,
      idempotent: idempotent !== false || Boolean(idempotencyKey),
      delayMs: this.#nextDelayMs(verdict),
      maxRetryAfterMs,
      usualMs,
      remainingMs: this.#deadline?.remainingMs() ?? Number.POSITIVE_INFINITY,
      payRetry: () => this.#payRetry(),
    })
  }

  /** Spends the budget, or returns why there is no retry. */
  #payRetry(): StopReason | undefined {
    const { name, budget } = this.#policy
    const { mayRetry, conditions } = this.#options
    if (mayRetry !== undefined && !callSafely(name, 'mayRetry', mayRetry, false)) return 'prevented'
    if (budget === undefined) return undefined
    const pay = (): StopReason | undefined => {
      if (budget.payRetry !== undefined) return budget.payRetry(this.#attempt, conditions?.())
      return budget.tryRetry(this.#attempt, conditions?.()) ? undefined : 'budget'
    }
    return callSafely<StopReason | undefined>(name, 'budget', pay, 'budget')
  }

  #retriedBelow(end: End<T>): boolean {
    if (wasGivenUp(this.#scope, 'error' in end ? end.error : end.value)) return true
    return 'value' in end && this.#policy.retriedBelow?.(end.value) === true
  }

  #nextDelayMs({ retryAfterMs }: Verdict): number {
    const { random, jitter, baseMs } = this.#policy
    const ownMs = backoffMs(this.#policy, this.#attempt, this.#delayMs, random)
    if (retryAfterMs === undefined) return ownMs
    // All callers got the same time, so each adds a random delay to it.
    return Math.max(ownMs, retryAfterMs + (jitter === 'none' ? 0 : random() * baseMs))
  }

  #emitDecision(decision: RetryDecision, end: End<T>): void {
    if (!listening()) return
    const { name } = this.#policy
    const attempt = this.#attempt
    const error = 'error' in end ? end.error : undefined
    if (decision.retry) {
      emit({ type: 'retry.scheduled', name, attempt, delayMs: decision.delayMs, error })
    } else {
      emit({ type: 'retry.stopped', name, attempt, because: decision.because, error })
    }
  }
}

/** Updates the usual duration of a successful attempt, a moving average. */
export function learnUsual(policy: RetryPolicy, durationMs: number): void {
  const { usualMs } = policy
  policy.usualMs = usualMs === 0 ? durationMs : usualMs + (durationMs - usualMs) / 8
}

/**
 * Errors and responses that retries within one attempt have given up on. Two nested retries of three
 * attempts each would make nine, so the outer one does not repeat what the inner one has given up on.
 *
 * An error object does not say where it was thrown: unrelated calls may share a constant error. So
 * each attempt runs in an async context of its own, and an inner retry adds its final results to
 * the scope that it runs in.
 */
export interface AttemptScope {
  /** Created by the first retry that gives up; most attempts contain none. */
  givenUp: Set<unknown> | undefined
}

const scopes = new AsyncLocalStorage<AttemptScope>()
/**
 * Objects that were given up on, and copies of them, each with the object that is in a scope. Ordinary responses
 * have no entry: V8 would keep the original until a full garbage collection.
 */
const originals = new WeakMap<object, object>()

/** Calls the function of an attempt in its scope. */
export function runInScope<A extends unknown[], T>(
  scope: AttemptScope,
  fn: (...args: A) => T,
  ...args: A
): T {
  return scopes.run(scope, fn, ...args)
}

/** A retry has given up on this error or value. */
function noteGivenUp(result: unknown): void {
  const scope = scopes.getStore()
  if (scope === undefined) return
  scope.givenUp ??= new Set()
  scope.givenUp.add(result)
  if (isObject(result)) originals.set(result, result)
}

/** If the original was given up on, so was the response that replaces it. */
export function carryGivenUp(original: object, copy: object): void {
  const inScope = originals.get(original)
  if (inScope !== undefined) originals.set(copy, inScope)
}

/** Whether a retry within the attempt of this scope has given up on the attempt's error or value. */
function wasGivenUp(scope: AttemptScope | undefined, result: unknown): boolean {
  const givenUp = scope?.givenUp
  if (givenUp === undefined) return false
  if (givenUp.has(result)) return true
  const original = isObject(result) ? originals.get(result) : undefined
  // A scope may contain undefined: an inner retry may have given up on that.
  return original !== undefined && givenUp.has(original)
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}
