/**
 * `fetch`, guarded: what any SDK that takes a fetch can be given. Decides by method and idempotency
 * key whether a request may be sent twice, and never after its answer has begun to be read.
 */
import { randomUUID } from 'node:crypto'
import { SpillwayError } from '../../core/errors.js'
import { type HopNames, hopHeadersFor } from '../../core/hops.js'
import {
  refusalBody,
  retryAfterMilliseconds,
  retryAfterSeconds,
} from '../../core/refusal-answer.js'
import type { Clock } from '../../core/time/clock.js'
import type { CallContext } from '../pipeline/context.js'
import type { RunOptions } from '../run-options.js'
import { reportErrorsAs } from '../stream/watched-stream.js'
import { withinConnectTime } from './connect-timeout.js'
import { inWordsOf, type SdkErrors } from './sdk-errors.js'

export type Fetch = typeof globalThis.fetch

export interface FetchOptions {
  /** The fetch underneath. Default: Node's own. */
  fetch?: Fetch
  /** Longest time until the request is on a connection. Needs Node's own fetch, or undici's. */
  connectMs?: number
  /** Sends remaining time and attempt along, under these names. */
  hops?: HopNames
  /**
   * Sends a key of its own with requests that have none, under this name, so that they may be sent
   * twice. For downstreams that know what to do with it.
   */
  idempotencyHeader?: string
  /** What this request is about: lane, cost, user. */
  describe?: (request: { url: string; method: string; headers: Headers }) => RunOptions | undefined
  /** A refusal as a response, in place of an error, for clients that know only responses. */
  respond?: boolean
  /** The SDK this is for: an answer that Spillway breaks off is broken off with an error of its own. */
  sdk?: SdkErrors
}

type Run = <T>(fn: (context: CallContext) => Promise<T>, options: RunOptions) => Promise<T>

/** Doing these twice is the same as once. */
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])
const KEY_HEADERS = ['idempotency-key', 'x-idempotency-key']

export function createFetch(
  run: Run,
  clock: Clock,
  options: FetchOptions,
  fixed: RunOptions,
): Fetch {
  const { fetch: send = globalThis.fetch, describe, respond, sdk } = options
  const sender: Sender = { ...options, send, clock }
  const fixes = Object.keys(fixed).length > 0

  function guarded(input: Input, init: RequestInit): Promise<Response> {
    const request = new GuardedRequest(sender, input, init)
    const signal = init.signal ?? request.made?.signal
    const described = describe?.(request)
    // Of several objects spread into one only the first is quick to copy, so none is without need.
    const said = fixes ? { ...fixed, ...described } : described
    const about: RunOptions = { ...said, idempotent: request.safe }
    if (signal != null) about.signal = signal
    return run((context) => request.send(context), about)
  }

  /** As with `fetch` itself, an invalid request rejects the promise. */
  const asked: Fetch = (input, init) => {
    try {
      return guarded(input, init ?? {})
    } catch (error) {
      return Promise.reject(error)
    }
  }
  const told = sdk === undefined ? asked : tellingAs(sdk, asked)
  if (respond !== true) return told
  return (input, init) => told(input, init).catch(respondTo)
}

/** Errors that end a streamed answer become errors of this SDK. */
function tellingAs(sdk: SdkErrors, send: Fetch): Fetch {
  const inItsWords = (error: unknown) => inWordsOf(sdk, error)
  return async (input, init) => {
    const response = await send(input, init)
    if (response.body !== null) reportErrorsAs(response.body, inItsWords)
    return response
  }
}

type Input = Parameters<Fetch>[0]

interface Sender extends FetchOptions {
  readonly send: Fetch
  readonly clock: Clock
}

/** One request, however often it is sent. What there is to know about it is found out when asked. */
class GuardedRequest {
  readonly #sender: Sender
  readonly #input: Input
  readonly #init: RequestInit
  readonly made: Request | undefined
  readonly method: string
  /** Whether it may be sent twice. */
  readonly safe: boolean
  #headers: Headers | undefined
  /** Headers of ours were added to those it came with. */
  #added = false

  constructor(sender: Sender, input: Input, init: RequestInit) {
    this.#sender = sender
    this.#input = input
    this.#init = init
    this.made = input instanceof Request ? input : undefined
    this.method = (init.method ?? this.made?.method ?? 'GET').toUpperCase()
    // A mistake in them is the caller's, and no failure of the downstream.
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
    const { connectMs, clock } = this.#sender
    const headers = this.#headersFor(context)
    if (connectMs === undefined) return this.#sendWith(context.signal, headers)
    return withinConnectTime(connectMs, clock, context, (signal) => this.#sendWith(signal, headers))
  }

  #sendWith(signal: AbortSignal, headers: Headers | undefined): Promise<Response> {
    const init: RequestInit = { ...this.#init, signal }
    if (headers !== undefined) init.headers = headers
    return this.#sender.send(this.#input, init)
  }

  /** Those to send in place of its own, if they differ. */
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

/** What Spillway decided, as an answer; what the network did stays an error. */
function respondTo(error: unknown): Response {
  if (!(error instanceof SpillwayError)) throw error
  const { status, retryAfterMs } = error
  const headers = new Headers({ 'content-type': 'application/json' })
  if (retryAfterMs !== undefined) {
    headers.set('retry-after', retryAfterSeconds(retryAfterMs))
    headers.set('retry-after-ms', retryAfterMilliseconds(retryAfterMs))
  }
  return new Response(refusalBody(error), { status, headers })
}
