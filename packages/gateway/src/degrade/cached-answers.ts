/**
 * Keeps the last good answer to each request of a route, to send it when no target answers. Only complete answers with
 * status 200 are kept. A streamed answer is kept as its events and used for streamed requests only.
 */
import type { Clock } from 'spillway'
import { type StaleCache, staleCache } from 'spillway/degrade'
import type { CachedAnswerConfig } from '../config/config.js'
import type { SentAnswer } from '../vendor/sent-answer.js'
import { matcherOf } from './request-key.js'

export interface CachedAnswer {
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: Buffer
}

/** Receives the bytes of an answer while they are sent to the client. */
export interface AnswerCopy {
  add(bytes: Buffer): void
  /** The answer is complete. */
  complete(): void
  /** Drops the bytes. Called at the end of the request, complete or not. */
  release(): void
}

/** Headers that are needed to read the body. The others belong to one exchange, not to the answer. */
const KEPT_HEADERS = ['content-type', 'content-encoding', 'content-language'] as const
/** Approximate memory of an entry without its body. */
const ENTRY_BYTES = 500
const FORBIDS_KEEPING = /\bno-store\b/i
const PRIVATE = /\bprivate\b/i

export class CachedAnswers {
  readonly config: CachedAnswerConfig
  readonly #cache: StaleCache
  /** Bytes of answers that are still being sent. */
  #copiedBytes = 0

  constructor(config: CachedAnswerConfig, clock: Clock) {
    this.config = config
    const { maxAgeMs, maxEntries, maxBytes } = config
    this.#cache = staleCache({
      maxAgeMs,
      size: maxEntries,
      maxBytes,
      bytesOf: (value) => (value as CachedAnswer).bytes.length + ENTRY_BYTES,
      clock,
    })
  }

  find(key: string): { readonly answer: CachedAnswer; readonly ageMs: number } | undefined {
    const options = { cacheKey: key }
    const call = {
      guard: '',
      fn: () => undefined,
      options,
      error: undefined,
      value: undefined,
      returned: false,
    }
    const found = this.#cache.answer({ ...call, reason: 'error' })
    // The cache answers synchronously; only other fallbacks of the library return a promise.
    if (found === undefined || found instanceof Promise) return undefined
    return { answer: found.value as CachedAnswer, ageMs: found.ageMs ?? 0 }
  }

  keep(key: string, answer: CachedAnswer): void {
    this.#cache.learn?.({ cacheKey: key }, answer)
  }

  /** Copies an answer while it is sent to the client. Undefined if this answer must not be kept. */
  copyOf(key: string, response: SentAnswer): AnswerCopy | undefined {
    if (!this.#mayKeep(response)) return undefined
    const headers: Record<string, string> = {}
    for (const name of KEPT_HEADERS) {
      const value = response.header(name)
      if (value !== undefined) headers[name] = value
    }
    const { maxAnswerBytes, maxBytes } = this.config
    let chunks: Buffer[] | undefined = []
    let length = 0
    const release = () => {
      this.#copiedBytes -= length
      length = 0
      chunks = undefined
    }
    return {
      release,
      add: (bytes) => {
        if (chunks === undefined) return
        length += bytes.length
        this.#copiedBytes += bytes.length
        chunks.push(bytes)
        if (length > maxAnswerBytes || this.#copiedBytes > maxBytes) release()
      },
      complete: () => {
        if (chunks === undefined) return
        // One copy: a reference to a small chunk would keep its whole buffer in memory.
        const bytes = Buffer.concat(chunks)
        release()
        if (!reportsError(bytes, headers)) this.keep(key, { headers, bytes })
      },
    }
  }

  #mayKeep(response: SentAnswer): boolean {
    if (response.status !== 200 || response.header('set-cookie') !== undefined) return false
    const control = response.header('cache-control') ?? ''
    if (FORBIDS_KEEPING.test(control)) return false
    if (this.config.shared && PRIVATE.test(control)) return false
    // A gateway behind this one has answered in place of its vendor.
    if ((response.header('spillway-degraded') ?? '?0') !== '?0') return false
    const vary = (response.header('vary') ?? '').toLowerCase().split(',')
    const isIgnored = matcherOf(this.config.ignoreHeaders)
    return !vary.some((name) => name.trim() === '*' || isIgnored(name.trim()))
  }
}

/** Vendors also report errors in answers with status 200, and in the middle of streams. */
function reportsError(bytes: Buffer, headers: CachedAnswer['headers']): boolean {
  if (headers['content-encoding'] !== undefined) return false
  const type = headers['content-type']?.toLowerCase() ?? ''
  if (type.startsWith('text/event-stream')) return eventsOf(bytes.toString()).some(isError)
  return type.startsWith('application/json') && isError(bytes.toString())
}

function eventsOf(stream: string): string[] {
  return stream.split(/\r\n|\n|\r/).flatMap((line) => /^data: ?(.*)$/.exec(line)?.[1] ?? [])
}

function isError(json: string): boolean {
  // Most events of a stream contain neither word, so they are not parsed.
  if (!/"(?:error|response\.failed)"/.test(json)) return false
  try {
    const { error, type } = (JSON.parse(json) ?? {}) as { error?: unknown; type?: unknown }
    return (error !== undefined && error !== null) || type === 'error' || type === 'response.failed'
  } catch {
    return true
  }
}
