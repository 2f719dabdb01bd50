/**
 * Spans for OpenTelemetry: one per call, with one per attempt, which lasts until the last byte of
 * its response. A refusal is an event with the code, the stage and the numbers. Spans contain no
 * users, no error messages and nothing of requests except the lane.
 */
import { SpillwayError } from '../core/errors.js'
import type { Outcome } from '../core/outcome.js'
import type { AttemptTrace, CallTrace, GuardTracer } from '../guard/pipeline/trace.js'

/** The part of `@opentelemetry/api` that is used: pass the module itself. */
export interface OpenTelemetryApi {
  /** The trace API. */
  readonly trace: {
    /** Returns a tracer. */
    getTracer(name: string): unknown
    /** Returns a context with a span. */
    setSpan(context: never, span: never): unknown
  }
  /** The context API. */
  readonly context: {
    /** The current context. */
    active(): unknown
    /** Runs a function in a context. */
    with(context: never, fn: () => unknown): unknown
  }
  /** The propagation API. */
  readonly propagation: {
    /** Writes a context into headers. */ inject(context: never, carrier: object): void
  }
}

type Attributes = Record<string, string | number | boolean>

interface Span {
  setAttribute(name: string, value: string | number | boolean): unknown
  addEvent(name: string, attributes: Attributes): unknown
  setStatus(status: { code: number }): unknown
  end(): void
}

interface Tracer {
  startSpan(name: string, options: { kind: number; attributes: Attributes }, context: never): Span
}

// Numbers of the specification.
const INTERNAL = 0
const CLIENT = 2
const FAILED = { code: 2 } as const

/**
 * Creates a tracer that records calls and attempts as spans of OpenTelemetry.
 *
 * @example
 * import * as api from '@opentelemetry/api'
 *
 * const spillway = createSpillway({ tracer: openTelemetryTracer(api) })
 */
export function openTelemetryTracer(api: OpenTelemetryApi): GuardTracer {
  const tracer = api.trace.getTracer('spillway') as Tracer
  return {
    begin({ guard, lane, parent }) {
      const around = (parent ?? api.context.active()) as never
      const attributes = { 'spillway.guard': guard, 'spillway.lane': lane }
      const span = tracer.startSpan(`spillway ${guard}`, { kind: INTERNAL, attributes }, around)
      return new CallSpan(api, tracer, guard, span, api.trace.setSpan(around, span as never))
    },
  }
}

/** Lasts until its caller has a result and all its attempts are over. */
class CallSpan implements CallTrace {
  readonly #api: OpenTelemetryApi
  readonly #tracer: Tracer
  readonly #guard: string
  readonly #span: Span
  readonly #context: unknown
  #open = 1

  constructor(api: OpenTelemetryApi, tracer: Tracer, guard: string, span: Span, context: unknown) {
    this.#api = api
    this.#tracer = tracer
    this.#guard = guard
    this.#span = span
    this.#context = context
  }

  attempt({ lane, attempt, hedge }: Parameters<CallTrace['attempt']>[0]): AttemptTrace {
    this.#open++
    const attributes = {
      'spillway.guard': this.#guard,
      'spillway.lane': lane,
      'spillway.attempt': attempt,
      'spillway.hedge': hedge,
    }
    const name = `spillway ${this.#guard} attempt`
    const around = this.#context as never
    const span = this.#tracer.startSpan(name, { kind: CLIENT, attributes }, around)
    const context = this.#api.trace.setSpan(around, span as never)
    return new AttemptSpan(this.#api, span, context, () => this.#close())
  }

  answered(): void {
    this.#close()
  }

  refused(error: unknown): void {
    this.#span.setStatus(FAILED)
    this.#span.setAttribute('error.type', typeOf(error))
    if (error instanceof SpillwayError) this.#span.addEvent('spillway.refused', factsOf(error))
    this.#close()
  }

  #close(): void {
    if (--this.#open === 0) this.#span.end()
  }
}

class AttemptSpan implements AttemptTrace {
  readonly #api: OpenTelemetryApi
  readonly #span: Span
  readonly #context: unknown
  readonly #onEnd: () => void
  #ended = false

  constructor(api: OpenTelemetryApi, span: Span, context: unknown, onEnd: () => void) {
    this.#api = api
    this.#span = span
    this.#context = context
    this.#onEnd = onEnd
  }

  run<T>(fn: () => T): T {
    return this.#api.context.with(this.#context as never, fn) as T
  }

  get headers(): Readonly<Record<string, string>> {
    const carrier: Record<string, string> = {}
    this.#api.propagation.inject(this.#context as never, carrier)
    return carrier
  }

  failed(error: unknown): void {
    this.#span.setAttribute('error.type', typeOf(error))
  }

  end(outcome: Outcome): void {
    if (this.#ended) return
    this.#ended = true
    this.#span.setAttribute('spillway.outcome', outcome)
    if (outcome === 'failure') this.#span.setStatus(FAILED)
    this.#span.end()
    this.#onEnd()
  }
}

/** A message may contain an address or a key; a code does not. */
function typeOf(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown }
  if (typeof code === 'string') return code
  return typeof name === 'string' ? name : 'unknown'
}

function factsOf({ code, stage, scope, retryAfterMs, details }: SpillwayError): Attributes {
  const facts: Attributes = { code, stage, scope }
  if (retryAfterMs !== undefined) facts.retryAfterMs = retryAfterMs
  for (const [name, value] of Object.entries(details)) {
    // Numbers only, because texts may be names of users.
    if (typeof value === 'number' || typeof value === 'boolean') facts[name] = value
  }
  return facts
}
