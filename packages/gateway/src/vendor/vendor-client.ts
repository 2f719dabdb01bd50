/** HTTP connections to one vendor, by undici. */
import { remembered } from 'spillway/internal'
import { type Dispatcher, Pool } from 'undici'
import { malformedAnswer, toVendorError } from './vendor-error.js'

export interface VendorRequest {
  readonly method: Dispatcher.HttpMethod
  /** With the query. */
  readonly path: string
  /** Names and values alternate. */
  readonly headers: string[]
  readonly body: Buffer | string | AsyncIterable<Buffer> | undefined
}

/** Called in this order; `onError` at most once, in place of the rest. */
export interface VendorHandler {
  /** Lower-case names and values alternate; all of them are valid in another head. */
  onHead(status: number, headers: string[]): void
  /** False pauses the answer until `resume()`. Bytes that were already read may still follow. */
  onData(chunk: Buffer): boolean
  onComplete(): void
  onError(error: Error): void
}

/** A request that was handed to undici. */
export interface PendingRequest {
  /** The handler is not called again. */
  abort(error: Error): void
  resume(): void
}

/** Idle connections are closed earlier than most servers do it, so that few requests meet a closing connection. */
const KEEP_ALIVE_MS = 4_000
/** Subtracted from the keep-alive time that a vendor announces. */
const KEEP_ALIVE_MARGIN_MS = 1_000

export class VendorClient {
  readonly #pool: Pool

  constructor(origin: string, connectMs: number) {
    this.#pool = new Pool(origin, {
      connect: { timeout: connectMs },
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveTimeoutThreshold: KEEP_ALIVE_MARGIN_MS,
      // The guard of the vendor has these time limits.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
  }

  /**
   * Passes the answer to `handler` piece by piece, without a stream in between. Throws if the request cannot be
   * written as HTTP.
   */
  dispatch({ method, path, headers, body }: VendorRequest, handler: VendorHandler): PendingRequest {
    checkWritable(path, headers)
    const relay = new AnswerRelay(handler, method)
    // undici accepts an iterable here, although its types do not show it.
    this.#pool.dispatch({ method, path, headers, body: body as Buffer | string | null }, relay)
    return relay
  }

  /** For answers that are read as a whole. */
  request(
    { method, path, headers, body }: VendorRequest,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    const whole = body as Buffer | string | null
    return this.#pool.request({ method, path, headers, body: whole, signal })
  }

  /** Open connections, and those of them that no request uses. */
  get counts(): { connected: number; free: number } {
    const { connected, free } = this.#pool.stats
    return { connected, free }
  }

  async destroy(): Promise<void> {
    await this.#pool.destroy()
  }
}

/**
 * undici's handler methods of version 6. Those of version 7 build an object of all headers and decode them as UTF-8;
 * header values are Latin-1.
 */
class AnswerRelay implements Dispatcher.DispatchHandler, PendingRequest {
  readonly #handler: VendorHandler
  readonly #isHead: boolean
  #abort: ((error: Error) => void) | undefined
  #resume: (() => void) | undefined
  #aborted: Error | undefined
  /** The handler was called for the last time. */
  #finished = false
  #started = false
  /** The status and headers of the answer have arrived. */
  #answered = false

  constructor(handler: VendorHandler, method: string) {
    this.#handler = handler
    this.#isHead = method === 'HEAD'
  }

  abort(error: Error): void {
    this.#aborted ??= error
    this.#abort?.(error)
  }

  resume(): void {
    this.#resume?.()
  }

  /** A connection is open, and the request is written next. */
  onConnect(abort: (error: Error) => void): void {
    this.#started = true
    this.#abort = abort
    if (this.#aborted !== undefined) abort(this.#aborted)
  }

  onHeaders(status: number, raw: Buffer[], resume: () => void): boolean {
    const isInformational = status < 200
    if (isInformational || this.#answered || this.#aborted !== undefined) return true
    this.#answered = true
    this.#resume = resume
    this.#handler.onHead(status, readHeaders(raw, this.#isHead))
    // These have no body, also if they announce its length. undici would report a missing body.
    if (status === 204 || status === 304) this.onComplete()
    return true
  }

  onData(chunk: Buffer): boolean {
    return this.#isSilent || this.#handler.onData(chunk)
  }

  onComplete(): void {
    if (this.#isSilent) return
    this.#finished = true
    this.#handler.onComplete()
  }

  onError(error: Error): void {
    if (this.#isSilent) return
    this.#finished = true
    this.#handler.onError(toVendorError(error, this.#started))
  }

  get #isSilent(): boolean {
    return this.#finished || this.#aborted !== undefined
  }
}

const PATH = /^[\x21-\x7e\x80-\xff]+$/
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const NOT_IN_VALUE = /[^\t\x20-\x7e\x80-\xff]/

/** undici checks this as well, but its pool does not use a connection again that was chosen for a refused request. */
function checkWritable(path: string, headers: readonly string[]): void {
  if (!PATH.test(path)) throw new TypeError('a path must not contain spaces or control characters')
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string
    if (!HEADER_NAME.test(name)) throw new TypeError('a header name has an invalid character')
    if (NOT_IN_VALUE.test(headers[i + 1] as string)) {
      throw new TypeError(`the header ${name} has an invalid character`)
    }
  }
}

/** A header's name in lower case; empty if it is invalid. As a property name, `__proto__` would set a prototype. */
const nameOf = remembered((written) => {
  if (!HEADER_NAME.test(written)) return ''
  const name = written.toLowerCase()
  return name === '__proto__' ? '-proto-' : name
})

function readHeaders(raw: readonly Buffer[], isHead: boolean): string[] {
  const headers: string[] = []
  let codings = 0
  for (let i = 0; i < raw.length; i += 2) {
    const name = nameOf((raw[i] as Buffer).toString('latin1'))
    const value = (raw[i + 1] as Buffer).toString('latin1')
    // The parser refuses these as well. The check stays because the values are written into another head.
    if (name === '' || NOT_IN_VALUE.test(value)) {
      throw malformedAnswer('has characters in its head that HTTP does not allow')
    }
    if (name === 'transfer-encoding') {
      codings++
      if (!isHead && (codings > 1 || value.toLowerCase() !== 'chunked')) {
        throw malformedAnswer('has an unknown transfer-encoding')
      }
    }
    headers.push(name, value)
  }
  return headers
}
