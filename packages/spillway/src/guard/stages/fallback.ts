/**
 * Fallbacks answer in place of a failed call. The first fallback that has an answer is used. A call has failed if
 * it threw or was refused, and also if it returned a value that is judged a failure, such as a 503 response. Each
 * fallback is tried at most once for a call, in order. The fallbacks are in `degrade/`; a guard knows only this port.
 */
import { discardResult } from '../../core/discard.js'
import { type ErrorCode, SpillwayError } from '../../core/errors.js'
import { callSafely, emit, listening } from '../../core/events.js'
import { arrayOf, type Check, OptionsError } from '../../core/options/checks.js'
import { described } from '../../core/options/schema.js'
import { answerOf, judge, type OutcomeOptions, type Verdict } from '../../core/outcome.js'
import type { Clock } from '../../core/time/clock.js'
import { isClientError } from '../decisions/decision-end.js'
import type { DegradedCall } from '../decisions/follower.js'
import { REPLACES, type ReplacedCall, type ReplacingOptions } from '../decisions/replaced-call.js'
import type { JudgedCall } from '../pipeline/call.js'
import type { CallFunction } from '../pipeline/context.js'
import type { Stage } from '../pipeline/stage.js'
import { type RunOptions, remainingOptions } from '../run-options.js'
import { isRelayed } from '../stream/relayed.js'

/** Why a fallback answered. */
export type DegradedReason = 'timeout' | 'error' | 'circuit-open' | 'limited' | 'shed'

export const REASONS = [
  'timeout',
  'error',
  'circuit-open',
  'limited',
  'shed',
] as const satisfies DegradedReason[]

/** A call that went wrong, as a fallback sees it. */
export interface FailedCall {
  /** Name of the guard. */
  readonly guard: string
  /** The function of the call. */
  readonly fn: CallFunction<unknown>
  /** The options of the call, with the time that is left. */
  readonly options: RunOptions
  /** The error of the call; undefined if it returned a value. */
  readonly error: unknown
  /** The value that was judged a failure; undefined if the call threw. A fallback must not read its body. */
  readonly value: unknown
  /** The call returned a value that is judged a failure, perhaps undefined. False: it threw or was refused. */
  readonly returned: boolean
  /** Why the call failed. */
  readonly reason: DegradedReason
}

/** An answer of a fallback. */
export interface FallbackAnswer {
  /** The answer. */
  value: unknown
  /** Description of the answer, such as `from the cache, 12 s old`. */
  message?: string
  /** Milliseconds since a cached value was stored. Default: not a cached value. */
  ageMs?: number
}

/** A fallback: answers in place of a failed call, or declines. */
export interface FallbackStep {
  /** Name in events and counts. */
  readonly name: string
  /**
   * Used for these reasons only. Default: for all, except a returned value that is judged throttled, such as a
   * 429 response: for that, `on` has to name `limited`.
   */
  readonly on?: readonly DegradedReason[] | undefined
  /** Makes a call of its own, so it is not used for a user whose limit is used up. */
  readonly costs?: boolean
  /** Returns undefined if it has no answer. An error counts as no answer, too. */
  answer(call: FailedCall): FallbackAnswer | undefined | Promise<FallbackAnswer | undefined>
  /** Called for every successful call. */
  learn?(options: RunOptions, value: unknown): void
}

/** The value of a call or of a fallback, and which of the two it is. */
export interface Degradable<T> {
  /** The answer. */
  value: T
  /** Whether a fallback answered. */
  degraded: boolean
  /** Why a fallback answered; undefined if none did. */
  reason: DegradedReason | undefined
  /** Name of the fallback that answered. */
  step: string | undefined
  /** Reason and fallback as a sentence; undefined if none answered. */
  message: string | undefined
}

/** The part of a guard that another guard needs to use it as a fallback. */
export interface GuardLike {
  /** Name of the guard. */
  readonly name: string
  /** Makes a call, and reports whether a fallback answered. */
  runDegradable<T>(fn: CallFunction<T>, options?: RunOptions): Promise<Degradable<T>>
}

/** How often a fallback answered for one reason. */
export interface FallbackCount {
  /** Name of the fallback. */
  step: string
  /** Why the call failed. `pressure`: a cheaper answer was chosen before the call, because the pod was busy. */
  reason: DegradedReason | 'pressure'
  /** How often it answered. */
  count: number
}

/** A fallback of the gateway that answered in place of a call. */
export interface UsedFallback extends DegradedCall {
  readonly reason: FallbackCount['reason']
}

/** Counts answers of fallbacks by fallback and reason. */
export class FallbackCounts {
  readonly #counts: FallbackCount[] = []

  add(step: string, reason: FallbackCount['reason']): void {
    const known = this.#counts.find((each) => each.step === step && each.reason === reason)
    if (known !== undefined) known.count++
    else this.#counts.push({ step, reason, count: 1 })
  }

  list(): FallbackCount[] {
    return this.#counts.map((each) => ({ ...each }))
  }
}

/** Guards that were tried for this call, because two fallbacks may lead to the same guard. */
const TRIED = Symbol('guards tried')
type Tracked = RunOptions & { [TRIED]?: Set<GuardLike> }

/** Another guard, with the call's function or its own. */
export function guardStep(
  guard: GuardLike,
  fn?: CallFunction<unknown>,
  own: { name?: string | undefined; on?: readonly DegradedReason[] | undefined } = {},
): FallbackStep {
  return {
    name: own.name ?? guard.name,
    on: own.on,
    costs: true,
    async answer(call) {
      const tried = (call.options as Tracked)[TRIED]
      if (tried?.has(guard)) return undefined
      tried?.add(guard)
      const options: ReplacingOptions = { ...call.options, [REPLACES]: replacedBy(call) }
      const answer = await guard.runDegradable(fn ?? call.fn, options)
      const { value, degraded, message } = answer
      // A value that was judged a failure is not an answer.
      if (failedAnswers.has(answer)) return void discardResult(value)
      return { value, message: degraded ? `${message}` : `from ${guard.name}` }
    },
  }
}

function replacedBy({ guard, options, error, value, returned }: FailedCall): ReplacedCall {
  const { lane, user, tier } = options
  const status = answerOf(returned ? { value } : { error })?.status
  const code =
    error instanceof SpillwayError ? error.code : isClientError(status) ? 'REJECTED' : 'FAILED'
  return { guard, lane, code, status, user, tier }
}

const EXPECTED =
  'a guard, or what otherGuard(), staleCache(), enqueue(), reduced() or staticValue() makes'

const readStep: Check<FallbackStep> = (value, path, problems) => {
  const { name, answer, runDegradable } = (value ?? {}) as FallbackStep & GuardLike
  if (typeof name === 'string' && typeof answer === 'function') return value as FallbackStep
  if (typeof name === 'string' && typeof runDegradable === 'function') {
    return guardStep(value as GuardLike)
  }
  const hint = typeof value === 'function' ? '; did you mean reduced(fn)?' : ''
  problems.push({ path, message: `must be ${EXPECTED}${hint}` })
  return undefined as never
}

const readSteps = arrayOf(readStep)

export const readFallback: Check<FallbackStep[]> = (value, path, problems) => {
  const steps = readSteps(value, path, problems)
  if (!Array.isArray(value)) return steps
  for (const [index, step] of value.entries()) {
    const before = value.indexOf(step)
    if (before < index) {
      problems.push({
        path: `${path}[${index}]`,
        message: `is listed twice, see ${path}[${before}]`,
      })
    }
  }
  return steps
}
described(readFallback, undefined)

export class FallbackStage implements Stage {
  readonly name = 'fallback'
  readonly scope = 'local'
  readonly per = 'call'
  readonly #name: string
  readonly #steps: readonly FallbackStep[]
  readonly #clock: Clock
  readonly #judging: OutcomeOptions
  readonly #counts = new FallbackCounts()

  constructor(name: string, steps: readonly FallbackStep[], clock: Clock, judging: OutcomeOptions) {
    this.#name = name
    this.#steps = steps
    this.#clock = clock
    this.#judging = judging
  }

  /** Runs the call. If it fails: the answer of the first fallback that has one, otherwise the call's own result. */
  async run<T>(
    start: () => Promise<T>,
    judged: JudgedCall,
    fn: CallFunction<T>,
    options: RunOptions,
  ): Promise<Degradable<T>> {
    const startMs = this.#clock.now()
    const instead = async (end: Pick<FailedCall, 'error' | 'value' | 'returned' | 'reason'>) => {
      const left: Tracked = remainingOptions(options, this.#clock.now() - startMs)
      const tracked: Tracked = { ...left, [TRIED]: left[TRIED] ?? new Set() }
      return (await this.#runSteps({ guard: this.#name, fn, options: tracked, ...end })) as
        | Degradable<T>
        | undefined
    }

    let value: T
    try {
      value = await start()
    } catch (error) {
      const reason = this.#reasonOf(error, options)
      const end = { error, value: undefined, returned: false }
      const answer = reason && (await instead({ ...end, reason }))
      if (answer !== undefined) return answer
      throw error
    }
    const { verdict } = judged
    if (verdict?.outcome === 'success') this.#learn(options, value)
    const reason = reasonOfValue(value, verdict, options)
    const answer = reason && (await instead({ error: undefined, value, returned: true, reason }))
    if (answer === undefined) return ownResult(value, verdict)
    // The caller gets the fallback's answer, so the body of the failed one is discarded.
    if (answer.value !== value) discardResult(value)
    return answer
  }

  /** How often each fallback answered, by reason. */
  counts(): FallbackCount[] {
    return this.#counts.list()
  }

  #learn(options: RunOptions, value: unknown): void {
    for (const step of this.#steps) {
      if (step.learn === undefined) continue
      callSafely(this.#name, `fallback ${step.name}`, () => step.learn?.(options, value), undefined)
    }
  }

  async #runSteps(call: FailedCall): Promise<Degradable<unknown> | undefined> {
    for (const step of this.#steps) {
      if (!isFor(step, call)) continue
      // The caller has aborted and needs no answer.
      if (call.options.signal?.aborted) return undefined
      const answer = await this.#tryStep(step, call)
      if (answer === undefined) continue
      this.#counts.add(step.name, call.reason)
      const { guard: name, reason } = call
      if (listening()) emit({ type: 'fallback.used', name, step: step.name, reason })
      const how = answer.message ?? `answered by ${step.name}`
      const message = `${name}: ${REASON_TEXTS[reason]}; ${how}`
      return { value: answer.value, degraded: true, reason, step: step.name, message }
    }
    return undefined
  }

  async #tryStep(step: FallbackStep, call: FailedCall): Promise<FallbackAnswer | undefined> {
    try {
      return await step.answer(call)
    } catch (error) {
      if (listening()) emit({ type: 'fallback.failed', name: call.guard, step: step.name, error })
      return undefined
    }
  }

  /**
   * Undefined if no fallback is used: the caller has aborted, or the request itself was wrong.
   */
  #reasonOf(error: unknown, { signal }: RunOptions): DegradedReason | undefined {
    if (signal?.aborted || error instanceof OptionsError) return undefined
    if (error instanceof SpillwayError) return REASON_OF[error.code]
    const { outcome } = judge({ error, signal }, this.#judging)
    if (outcome === 'throttled') return 'limited'
    return outcome === 'failure' ? 'error' : undefined
  }
}

/** Results whose value was judged a failure, so another guard does not take them for an answer. */
const failedAnswers = new WeakSet<Degradable<unknown>>()

/** Result of a call that no fallback replaced. */
export function ownResult<T>(value: T, verdict: Verdict | undefined): Degradable<T> {
  const answer = { value, degraded: false, reason: undefined, step: undefined, message: undefined }
  const outcome = verdict?.outcome
  if (outcome === 'failure' || outcome === 'throttled') failedAnswers.add(answer)
  return answer
}

/** Undefined: the value is the answer. The owner of a relayed body may have passed on some of it already. */
function reasonOfValue(
  value: unknown,
  verdict: Verdict | undefined,
  { signal }: RunOptions,
): DegradedReason | undefined {
  if (signal?.aborted) return undefined
  if (typeof value === 'object' && value !== null && isRelayed(value)) return undefined
  if (verdict?.outcome === 'failure') return 'error'
  return verdict?.outcome === 'throttled' ? 'limited' : undefined
}

function isFor({ on, costs }: FallbackStep, { reason, error, returned }: FailedCall): boolean {
  if (on === undefined && reason === 'limited' && returned) return false
  if (on !== undefined && !on.includes(reason)) return false
  return !(costs === true && error instanceof SpillwayError && error.code === 'USER_LIMITED')
}

/** Why a fallback answers for a call that was refused with this code. */
export function reasonOfRefusal(code: ErrorCode): DegradedReason {
  return REASON_OF[code]
}

const REASON_OF: Record<ErrorCode, DegradedReason> = {
  SHED: 'shed',
  QUEUE_FULL: 'shed',
  USER_LIMITED: 'limited',
  VENDOR_LIMITED: 'limited',
  QUEUE_TIMEOUT: 'timeout',
  CALL_TIMEOUT: 'timeout',
  DEADLINE_EXCEEDED: 'timeout',
  CIRCUIT_OPEN: 'circuit-open',
  THROTTLED: 'shed',
  VENDOR_ERROR: 'error',
  STORE_UNAVAILABLE: 'error',
  STAGE_REFUSED: 'shed',
  SHUTTING_DOWN: 'error',
}

const REASON_TEXTS: Record<DegradedReason, string> = {
  timeout: 'took too long',
  error: 'failed',
  'circuit-open': 'not called, its circuit is open',
  limited: 'its limit is used up',
  shed: 'refused, too much to do',
}
