/**
 * What Spillway decides against a call. One class, told apart by `code`; what a user's own function
 * throws is never wrapped in it.
 */

/** HTTP status of each code, unless the thrower overrides it. The keys are the codes. */
const STATUS = {
  SHED: 503,
  USER_LIMITED: 429,
  QUEUE_FULL: 503,
  QUEUE_TIMEOUT: 504,
  CIRCUIT_OPEN: 503,
  VENDOR_LIMITED: 429,
  CALL_TIMEOUT: 504,
  DEADLINE_EXCEEDED: 504,
  VENDOR_ERROR: 502,
  STORE_UNAVAILABLE: 503,
  STAGE_REFUSED: 503,
  CLOSED: 503,
} as const

export type ErrorCode = keyof typeof STATUS

/** A stage that Spillway brings along. */
export type BuiltInStage =
  | 'shed'
  | 'user-limit'
  | 'room'
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

/** Whose state decided: this pod's memory, or what all pods share. */
export type Scope = 'local' | 'shared'

/** The numbers behind a decision, by name. */
export type Details = Readonly<Record<string, number | string | boolean>>

export interface SpillwayErrorInit {
  code: ErrorCode
  stage: Stage
  scope: Scope
  /** Milliseconds after which a new try makes sense. Absent when nobody can say. */
  retryAfterMs?: number
  /** HTTP status to answer with. Default: the code's own. */
  status?: number
  details?: Details
  /** Turns the details into a sentence, only when somebody reads the message. */
  explain: (details: Details) => string
  cause?: unknown
}

const NO_DETAILS: Details = Object.freeze({})

/** False under `--frozen-intrinsics`, where writing the limit would throw. */
const STACK_LIMIT_WRITABLE =
  Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit')?.writable === true

/**
 * Sets how many frames the next errors remember, and answers with what it was before. Nothing: they do
 * not even get a place for them, which takes half the time of none.
 */
export function limitStack(frames: number | undefined): number | undefined {
  const before = Error.stackTraceLimit
  if (STACK_LIMIT_WRITABLE) Error.stackTraceLimit = frames as number
  return before
}

export class SpillwayError extends Error {
  readonly code: ErrorCode
  readonly stage: Stage
  readonly scope: Scope
  readonly retryAfterMs: number | undefined
  readonly details: Details
  status: number
  readonly #explain: (details: Details) => string

  constructor(init: SpillwayErrorInit) {
    // Refusals are thrown by the thousand when a pod is overloaded, and a stack would say only
    // where Spillway refuses. Without one an error costs a tenth.
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

  /** Some frameworks prefix an error's message in place. */
  override set message(text: string) {
    Object.defineProperty(this, 'message', { value: text, writable: true, configurable: true })
  }

  toJSON(): object {
    const { code, message, stage, scope, retryAfterMs, status, details } = this
    return { code, message, stage, scope, retryAfterMs, status, details }
  }
}

Object.defineProperty(SpillwayError.prototype, 'name', {
  value: 'SpillwayError',
  writable: true,
  configurable: true,
})

/** Milliseconds as a person wants to read them. */
export function inMs(value: unknown): string {
  return `${Math.round(Number(value) * 10) / 10} ms`
}

/** Shut mechanisms answer everything with this. */
export function closedError(stage: Stage, name: string): SpillwayError {
  return new SpillwayError({
    code: 'CLOSED',
    stage,
    scope: 'local',
    details: { name },
    explain: (details) => `${details.name} is closed`,
  })
}

const NEXT_TURN = Promise.resolve()

/**
 * A promise rejected one microtask from now. A promise born rejected has no handler yet, so Node
 * books it as unhandled and strikes it out again when the caller awaits it: four times the cost.
 */
export function refuse(error: unknown): Promise<never> {
  return new Promise((_, reject) => {
    NEXT_TURN.then(() => reject(error))
  })
}
