/**
 * Refusals and failures that Spillway decides. There is one class; `code` distinguishes the cases. An error that a
 * user's function throws is never wrapped in it.
 */

import { documentationUrl } from './project.js'

/** HTTP status of each code, unless the thrower overrides it. The keys are the codes. */
const STATUS = {
  SHED: 503,
  USER_LIMITED: 429,
  QUEUE_FULL: 503,
  QUEUE_TIMEOUT: 504,
  CIRCUIT_OPEN: 503,
  THROTTLED: 503,
  VENDOR_LIMITED: 429,
  CALL_TIMEOUT: 504,
  DEADLINE_EXCEEDED: 504,
  VENDOR_ERROR: 502,
  STORE_UNAVAILABLE: 503,
  STAGE_REFUSED: 503,
  SHUTTING_DOWN: 503,
} as const

/** Codes of a `SpillwayError`. Each has a default HTTP status. */
export type ErrorCode = keyof typeof STATUS

/** A stage that Spillway brings along. */
export type BuiltInStage =
  | 'shed'
  | 'user-limit'
  | 'queue'
  | 'breaker'
  | 'throttle'
  | 'vendor-limit'
  | 'pace'
  | 'concurrency'
  | 'timeout'
  | 'call'
  | 'retry'
  | 'hedge'
  | 'fallback'

/** The stage that took the decision: a built-in one, or a custom stage by its name. */
export type Stage = BuiltInStage | (string & {})

/** Whether this pod's own state decided or the state that all pods share. */
export type Scope = 'local' | 'shared'

/** The numbers behind a decision, by name. */
export type Details = Readonly<Record<string, number | string | boolean>>

export interface SpillwayErrorInit {
  code: ErrorCode
  stage: Stage
  scope: Scope
  /** Milliseconds after which a retry makes sense. Absent if unknown. */
  retryAfterMs?: number
  /** HTTP status to answer with. Default: the status of the code. */
  status?: number
  details?: Details
  /** Builds the message from the details. Called when the message is first read. */
  explain: (details: Details) => string
  cause?: unknown
}

const NO_DETAILS: Details = Object.freeze({})

/** False under `--frozen-intrinsics`, where assigning the limit throws. */
const STACK_LIMIT_WRITABLE =
  Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit')?.writable === true

/**
 * Sets how many stack frames new errors capture and returns the previous number. With undefined, V8
 * does not create the `stack` property at all, which takes half the time of a limit of 0.
 */
export function limitStack(frames: number | undefined): number | undefined {
  const before = Error.stackTraceLimit
  if (STACK_LIMIT_WRITABLE) Error.stackTraceLimit = frames as number
  return before
}

/** An error by which Spillway itself refuses or ends a call. `code` tells the cases apart. */
export class SpillwayError extends Error {
  /** What was decided, such as `CIRCUIT_OPEN`. */
  readonly code: ErrorCode
  /** The stage that decided. */
  readonly stage: Stage
  /** Whether this pod or the shared state decided. */
  readonly scope: Scope
  /** Milliseconds after which a retry makes sense; undefined if unknown. */
  readonly retryAfterMs: number | undefined
  /** The numbers behind the decision, by name. */
  readonly details: Details
  /** HTTP status to answer with. */
  status: number
  readonly #explain: (details: Details) => string

  constructor(init: SpillwayErrorInit) {
    // An overloaded pod throws thousands of refusals, and their stack shows only Spillway's own
    // code. Without a stack an error costs a tenth.
    const limit = limitStack(undefined)
    super()
    limitStack(limit)
    this.code = init.code
    this.stage = init.stage
    this.scope = init.scope
    this.retryAfterMs = init.retryAfterMs
    this.details = init.details ?? NO_DETAILS
    this.status = init.status ?? STATUS[init.code]
    this.#explain = init.explain
    if (init.cause !== undefined) this.cause = init.cause
  }

  override get message(): string {
    return this.#explain(this.details)
  }

  /** Some frameworks add a prefix to an error's message in place. */
  override set message(text: string) {
    Object.defineProperty(this, 'message', { value: text, writable: true, configurable: true })
  }

  /** The page that explains the code: its causes, how to check them, and what to do. */
  get url(): string {
    return documentationUrl(`reference/error-codes#${this.code.toLowerCase().replaceAll('_', '-')}`)
  }

  toJSON(): object {
    const { code, message, stage, scope, retryAfterMs, status, details, url } = this
    return { code, message, stage, scope, retryAfterMs, status, details, url }
  }
}

Object.defineProperty(SpillwayError.prototype, 'name', {
  value: 'SpillwayError',
  writable: true,
  configurable: true,
})

/** Milliseconds as a time for messages, rounded: `250 ms`, `54.7 s`, `1 min 1 s`, `2 h 5 min`. */
export function readableTime(ms: unknown): string {
  const tenths = Math.round(Number(ms) * 10)
  if (tenths < 10_000) return `${tenths / 10} ms`
  const seconds = Math.round(Number(ms) / 100) / 10
  if (seconds < 60) return `${seconds} s`
  const whole = Math.round(seconds)
  const minutes = whole < 3_600 ? Math.floor(whole / 60) : Math.round(whole / 60)
  if (minutes < 60) return inTwo(minutes, 'min', whole % 60, 's')
  return inTwo(Math.floor(minutes / 60), 'h', minutes % 60, 'min')
}

function inTwo(larger: number, unit: string, smaller: number, smallerUnit: string): string {
  return `${larger} ${unit}${smaller === 0 ? '' : ` ${smaller} ${smallerUnit}`}`
}

/** A number and its noun, which is given in the plural: `1 call`, `2 calls`. */
export function counted(count: unknown, nouns: string): string {
  return `${count} ${Number(count) === 1 ? nouns.replace(/(?<=[a-z]{3})s$/, '') : nouns}`
}

/** How long to wait for a store that does not answer. Pods try to connect about as often. */
export const STORE_WAIT_MS = 1_000

/** The refusal of a mechanism that was closed. Waiting does not help in this process, so there is no `retryAfterMs`. */
export function closedError(stage: Stage, name: string): SpillwayError {
  return new SpillwayError({
    code: 'SHUTTING_DOWN',
    stage,
    scope: 'local',
    details: { name },
    explain: (details) => `${details.name}: its close() was called, so it starts no more calls`,
  })
}

/** The refusal to create a guard or a job queue after `spillway.close()`. */
export function closedSpillwayError(kind: 'guard' | 'job queue', name: string): SpillwayError {
  return new SpillwayError({
    code: 'SHUTTING_DOWN',
    stage: 'queue',
    scope: 'local',
    details: { name, kind },
    explain: (details) =>
      `spillway.close() was called before ${details.kind} ${details.name} was requested`,
  })
}

/** The refusal after a command to the store has failed. A `SpillwayError` says more already. */
export function storeUnavailable(stage: Stage, name: string, cause: unknown): SpillwayError {
  if (cause instanceof SpillwayError) return cause
  return new SpillwayError({
    code: 'STORE_UNAVAILABLE',
    stage,
    scope: 'shared',
    retryAfterMs: STORE_WAIT_MS,
    details: { name, why: storeProblem(cause) },
    explain: ({ name, why }) => `${name}: the store did not answer: ${why}`,
    cause,
  })
}

/**
 * Why a command to the store failed. The system's code stands for its message, and addresses are left out, because
 * clients of an HTTP server may read the refusal.
 */
export function storeProblem(error: unknown): string {
  const { code, cause } = Object(error) as { code?: unknown; cause?: unknown }
  if (typeof code === 'string') return code
  if (cause !== undefined) return storeProblem(cause)
  const message = error instanceof Error ? error.message : String(error)
  return message.replace(/\b[\w.-]+:\d+\b/g, '(address)').replace(/\.$/, '')
}

/** The refusal of an outage rule that allows no call. `why`: the problem of the store. `option`: the rule. */
export function refusedByOutageRule(
  stage: Stage,
  name: string,
  why: string,
  option: string,
  further?: Details,
): SpillwayError {
  return new SpillwayError({
    code: 'STORE_UNAVAILABLE',
    stage,
    scope: 'shared',
    retryAfterMs: STORE_WAIT_MS,
    details: { name, outage: 'refuse', option, why, ...further },
    explain: (details) =>
      `${details.name}: ${details.option} is 'refuse', and ${details.why}; retry in ${readableTime(STORE_WAIT_MS)}`,
  })
}

/** A promise that is resolved with this is rejected one microtask later. */
class Refusal {
  readonly #error: unknown

  constructor(error: unknown) {
    this.#error = error
  }

  // biome-ignore lint/suspicious/noThenProperty: a promise calls it
  then(_: unknown, reject: (error: unknown) => void): void {
    reject(this.#error)
  }
}

/**
 * A promise that is rejected one microtask later. For a promise that is created rejected, Node
 * records an unhandled rejection and removes it again when the caller awaits it, which costs four
 * times as much. A second promise, whose callback rejects this one, costs 180 ns more.
 */
export function refuse(error: unknown): Promise<never> {
  return Promise.resolve(new Refusal(error) as unknown as PromiseLike<never>)
}
