/**
 * `fetch`, guarded: what any SDK that takes a fetch can be given. Decides by method and idempotency
 * key whether a request may be sent twice, and never after its answer has begun to be read.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../core/clock.js'
import { SpillwayError } from '../core/errors.js'
import { type HopNames, hopHeadersFor } from '../core/hops.js'
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

  async function guarded(input: Parameters<Fetch>[0], init: RequestInit = {}): Promise<Response> {
    const request = input instanceof Request ? input : undefined
    const method = (init.method ?? request?.method ?? 'GET').toUpperCase()
    const headers = new Headers(init.headers ?? request?.headers)
    // Making them anew costs more than sending them: only where something is added.
    let added = false
    const keyed = hasKey(headers, idempotencyHeader)
    if (idempotencyHeader !== undefined && !keyed && !IDEMPOTENT.has(method)) {
      headers.set(idempotencyHeader, randomUUID())
      added = true
    }
    const url = request?.url ?? String(input)
    const signal = init.signal ?? request?.signal
    const replayable = isReplayable(init.body) && (request?.body ?? null) === null
    const safe = IDEMPOTENT.has(method) || hasKey(headers, idempotencyHeader)
    const runOptions: RunOptions = {
      ...fixed,
      ...describe?.({ url, method, headers }),
      ...(signal != null && { signal }),
      idempotent: safe && replayable,
    }
    return run((context) => {
      const sent = hops === undefined ? headers : new Headers(headers)
      if (hops !== undefined) {
        const all = hopHeadersFor(hops, context.attempt, context.deadline)
        for (const [name, value] of Object.entries(all)) sent.set(name, value)
      }
      const call = (signal: AbortSignal) =>
        send(input, added || hops ? { ...init, headers: sent, signal } : { ...init, signal })
      if (connectMs === undefined) return call(context.signal)
      return withinConnectTime(connectMs, clock, context.signal, call)
    }, runOptions)
  }

  const asked: Fetch = (input, init) => guarded(input, init ?? undefined)
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
  const { code, message, stage, status, retryAfterMs } = error
  const body = JSON.stringify({ error: { type: 'spillway', code, message, stage } })
  const headers = new Headers({ 'content-type': 'application/json' })
  if (retryAfterMs !== undefined) {
    headers.set('retry-after', String(Math.ceil(retryAfterMs / 1_000)))
    headers.set('retry-after-ms', String(Math.ceil(retryAfterMs)))
  }
  return new Response(body, { status, headers })
}
