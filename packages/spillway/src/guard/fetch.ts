/**
 * `fetch`, guarded: what any SDK that takes a fetch can be given. Decides by method and idempotency
 * key whether a request may be sent twice, and never after its answer has begun to be read.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../core/clock.js'
import { SpillwayError } from '../core/errors.js'
import { type HopNames, hopHeadersFor } from '../core/hops.js'
import { refusalBody, retryAfterMilliseconds, retryAfterSeconds } from '../core/refusal-answer.js'
import { withinConnectTime } from './connect-time.js'
import type { CallContext } from './context.js'
import type { RunOptions } from './run-options.js'

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
  const { fetch: send = globalThis.fetch, connectMs, hops, idempotencyHeader, describe } = options

  function guarded(input: Parameters<Fetch>[0], init: RequestInit): Promise<Response> {
    const request = input instanceof Request ? input : undefined
    const method = (init.method ?? request?.method ?? 'GET').toUpperCase()
    // Making headers costs more than sending them: only where there are any, or somebody looks.
    let made: Headers | undefined
    const headersOf = () => (made ??= new Headers(init.headers ?? request?.headers))
    // A mistake in them is the caller's, and no failure of the downstream.
    if (init.headers != null) headersOf()
    let added = false
    let safe = IDEMPOTENT.has(method)
    if (!safe) {
      const headers = headersOf()
      safe = hasKey(headers, idempotencyHeader)
      if (!safe && idempotencyHeader !== undefined) {
        headers.set(idempotencyHeader, randomUUID())
        added = safe = true
      }
    }
    const signal = init.signal ?? request?.signal
    const replayable = isReplayable(init.body) && (request?.body ?? null) === null
    const runOptions: RunOptions = {
      ...fixed,
      ...describe?.({
        get url() {
          return request?.url ?? String(input)
        },
        method,
        get headers() {
          return headersOf()
        },
      }),
      ...(signal != null && { signal }),
      idempotent: safe && replayable,
    }
    const sendWith = (signal: AbortSignal, headers: Headers | undefined) =>
      send(input, headers === undefined ? { ...init, signal } : { ...init, headers, signal })
    return run((context) => {
      let sent = added ? headersOf() : undefined
      if (hops !== undefined) {
        sent = new Headers(headersOf())
        const all = hopHeadersFor(hops, context.attempt, context.deadline)
        for (const [name, value] of Object.entries(all)) sent.set(name, value)
      }
      if (connectMs === undefined) return sendWith(context.signal, sent)
      return withinConnectTime(connectMs, clock, context.signal, (signal) => sendWith(signal, sent))
    }, runOptions)
  }

  /** Like fetch itself: what is wrong with the request is told by the promise. */
  const asked: Fetch = (input, init) => {
    try {
      return guarded(input, init ?? {})
    } catch (error) {
      return Promise.reject(error)
    }
  }
  if (options.respond !== true) return asked
  return (input, init) => asked(input, init).catch(respondTo)
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
