/**
 * A guarded `fetch` for any client that accepts one. Method and idempotency key decide whether a request may be
 * sent twice. A request whose answer has begun to be read is never sent again.
 */
import { randomUUID } from 'node:crypto'
import { SpillwayError } from '../../core/errors.js'
import { type HopNames, hopHeadersFor, leastReserveMs } from '../../core/hops.js'
import { guardMessage, refusalHeaders } from '../../core/refusal-answer.js'
import { noteRefusal } from '../../core/refusal-of.js'
import type { Clock } from '../../core/time/clock.js'
import type { Cost } from '../../shared/rate-limiter/permit.js'
import type { ErrorTable } from '../llm/errors/error-table.js'
import type { CallContext } from '../pipeline/context.js'
import type { RunOptions } from '../run-options.js'
import { reportErrorsAs } from '../stream/watched-stream.js'
import { withinConnectTime } from './connect-timeout.js'
import { withFailure } from './failed-response.js'
import { type SdkErrors, toSdkError } from './sdk-errors.js'

export type Fetch = typeof globalThis.fetch

export interface FetchOptions {
  /** The function that sends requests. Default: Node's `fetch`. */
  fetch?: Fetch
  /** Longest time until the request is on a connection. Needs Node's own fetch, or undici's. */
  connectMs?: number
  /** Names of the headers for the remaining time and the attempt number. Default: they are not sent. */
  hops?: HopNames
  /**
   * Header in which requests without an idempotency key get one, so that they may be sent twice. For
   * downstreams that recognise it.
   */
  idempotencyHeader?: string
  /** Returns the lane, cost and user of a request. */
  describe?: (request: { url: string; method: string; headers: Headers }) => RunOptions | undefined
  /** Turns refusals into responses, for clients that handle errors as responses. */
  respond?: boolean
  /** The SDK that uses this fetch: a stream that Spillway ends gets an error of that SDK. */
  sdk?: SdkErrors
  /** The cost of an answer with an error status. Default: the estimated cost of the call. */
  refundOnError?: Cost
  /** Reads why an answer has an error status. Default: the status decides. */
  errors?: ErrorTable
}

type Run = <T>(fn: (context: CallContext) => Promise<T>, options: RunOptions) => Promise<T>

/** Methods whose repetition has no further effect. */
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])
const KEY_HEADERS = ['idempotency-key', 'x-idempotency-key']

export function createFetch(
  run: Run,
  clock: Clock,
  options: FetchOptions,
  fixed: RunOptions,
): Fetch {
  const { fetch: send = globalThis.fetch, describe, respond, sdk, hops } = options
  const sender: Sender = { ...options, send, clock }
  const fixes = Object.keys(fixed).length > 0

  function guarded(input: Input, init: RequestInit): Promise<Response> {
    const request = new GuardedRequest(sender, input, init)
    const signal = init.signal ?? request.made?.signal
    const described = describe?.(request)
    // V8 copies the first spread object of a literal quickly, further ones slowly.
    const options = fixes ? { ...fixed, ...described } : described
    const call: RunOptions = { ...options, idempotent: request.safe }
    if (signal != null) call.signal = signal
    // Refused before it takes any permits, not when its headers are written.
    if (hops !== undefined) call.needsMs = Math.max(call.needsMs ?? 0, leastReserveMs(hops))
    return run((context) => request.send(context), call)
  }

  /** Like `fetch`, an invalid request rejects the promise. */
  const rejecting: Fetch = (input, init) => {
    try {
      return guarded(input, init ?? {})
    } catch (error) {
      return Promise.reject(error)
    }
  }
  const converted = sdk === undefined ? rejecting : withSdkErrors(sdk, rejecting)
  if (respond !== true) return converted
  return (input, init) => converted(input, init).catch(respondTo)
}

/** Errors that end a streamed answer become errors of this SDK. */
function withSdkErrors(sdk: SdkErrors, send: Fetch): Fetch {
  const convert = (error: unknown) => toSdkError(sdk, error)
  return async (input, init) => {
    const response = await send(input, init)
    if (response.body !== null) reportErrorsAs(response.body, convert)
    return response
  }
}

type Input = Parameters<Fetch>[0]

interface Sender extends FetchOptions {
  readonly send: Fetch
  readonly clock: Clock
}

/** One request, which may be sent several times. */
class GuardedRequest {
  readonly #sender: Sender
  readonly #input: Input
  readonly #init: RequestInit
  readonly made: Request | undefined
  readonly method: string
  /** Whether the request may be sent twice. */
  readonly safe: boolean
  #headers: Headers | undefined
  /** An idempotency key was added to its own headers. */
  #added = false

  constructor(sender: Sender, input: Input, init: RequestInit) {
    this.#sender = sender
    this.#input = input
    this.#init = init
    this.made = input instanceof Request ? input : undefined
    this.method = (init.method ?? this.made?.method ?? 'GET').toUpperCase()
    // Throws for invalid headers, before the request could count as a failure of the downstream.
    if (init.headers != null) this.#headers = new Headers(init.headers)
    const replayable = isReplayable(init.body) && (this.made?.body ?? null) === null
    this.safe = (IDEMPOTENT.has(this.method) || this.#hasKey()) && replayable
  }

  get url(): string {
    return this.made?.url ?? String(this.#input)
  }

  // Creating a `Headers` object costs more than sending it, so it is created when it is needed.
  get headers(): Headers {
    this.#headers ??= new Headers(this.#init.headers ?? this.made?.headers)
    return this.#headers
  }

  #hasKey(): boolean {
    const { idempotencyHeader } = this.#sender
    if (hasKey(this.headers, idempotencyHeader)) return true
    if (idempotencyHeader === undefined) return false
    this.headers.set(idempotencyHeader, randomUUID())
    this.#added = true
    return true
  }

  send(context: CallContext): Promise<Response> {
    const { connectMs, clock, refundOnError, errors } = this.#sender
    const headers = this.#headersFor(context)
    const answer =
      connectMs === undefined
        ? this.#sendWith(context.signal, headers)
        : withinConnectTime(connectMs, clock, context, (signal) => this.#sendWith(signal, headers))
    if (refundOnError === undefined && errors === undefined) return answer
    return answer.then((response) => {
      if (response.status < 400) return response
      if (refundOnError !== undefined) context.settle(refundOnError)
      return errors === undefined ? response : withFailure(errors, response, clock.wallMs())
    })
  }

  #sendWith(signal: AbortSignal, headers: Headers | undefined): Promise<Response> {
    const init: RequestInit = { ...this.#init, signal }
    if (headers !== undefined) init.headers = headers
    return this.#sender.send(this.#input, init)
  }

  /** The headers to send instead of the request's; undefined if they do not differ. */
  #headersFor({ attempt, deadline }: CallContext): Headers | undefined {
    const { hops } = this.#sender
    if (hops === undefined) return this.#added ? this.headers : undefined
    const sent = new Headers(this.headers)
    const all = hopHeadersFor(hops, attempt, deadline)
    for (const [name, value] of Object.entries(all)) sent.set(name, value)
    return sent
  }
}

/** A stream can be sent only once. */
function isReplayable(body: RequestInit['body']): boolean {
  if (body === undefined || body === null) return true
  return (
    typeof body === 'string' ||
    body instanceof URLSearchParams ||
    body instanceof ArrayBuffer ||
    ArrayBuffer.isView(body) ||
    body instanceof Blob ||
    body instanceof FormData
  )
}

function hasKey(headers: Headers, own?: string): boolean {
  return KEY_HEADERS.some((name) => headers.has(name)) || (own !== undefined && headers.has(own))
}

/** Refusals become responses; errors of the network stay errors. */
function respondTo(error: unknown): Response {
  if (!(error instanceof SpillwayError)) throw error
  const { code, stage, url } = error
  const message = guardMessage(error)
  return refusalResponse(
    error,
    JSON.stringify({ error: { type: 'spillway', code, message, stage, url } }),
  )
}

/** A refusal as a response with this JSON body. SDKs must not retry it: the guard has decided already. */
export function refusalResponse(refusal: SpillwayError, body: string): Response {
  const { status } = refusal
  const headers = new Headers(refusal.retryAfterMs === undefined ? {} : refusalHeaders(refusal))
  headers.set('content-type', 'application/json')
  headers.set('x-should-retry', 'false')
  const response = new Response(body, { status, headers })
  // Hono's server replaces the global Response by one that has other headers once its body was used.
  void response.body
  noteRefusal(response.headers, refusal)
  return response
}
