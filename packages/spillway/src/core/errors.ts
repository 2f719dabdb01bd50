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

/** Milliseconds, rounded for messages. */
export function inMs(value: unknown): string {
  return `${Math.round(Number(value) * 10) / 10} ms`
}

/** A number and its noun, which is given in the plural: `1 call`, `2 calls`. */
export function counted(count: unknown, nouns: string): string {
  return `${count} ${Number(count) === 1 ? nouns.replace(/s$/, '') : nouns}`
}

/** How long to wait for a store that does not answer. Pods try to connect about as often. */
export const STORE_WAIT_MS = 1_000
/** How long to wait before another pod is tried. */
const OTHER_POD_WAIT_MS = 1_000

/** The refusal of a mechanism that was closed. Another pod, or this pod's replacement, can answer. */
export function closedError(stage: Stage, name: string): SpillwayError {
  return new SpillwayError({
    code: 'SHUTTING_DOWN',
    stage,
    scope: 'local',
    retryAfterMs: OTHER_POD_WAIT_MS,
    details: { name },
    explain: (details) => `${details.name} is closed`,
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
    details: { name },
    explain: (details) => `${details.name}: the store did not answer`,
    cause,
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
