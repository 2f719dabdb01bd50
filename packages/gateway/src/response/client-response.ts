/**
 * Writes the response to the client: headers with the gateway's decision, then the vendor's bytes as they arrive. A
 * stream that is cut off ends with the protocol's error event. If the protocol has none, the connection is aborted.
 */
import { type Clock, SpillwayError } from 'spillway'
import { SseFrames, type Timer } from 'spillway/internal'
import type { AnswerCopy } from '../degrade/cached-answers.js'
import type { FallbackAnswer } from '../degrade/request-fallbacks.js'
import { openai } from '../protocols/openai.js'
import type { Protocol } from '../protocols/protocol.js'
import type { GatewayAnswer } from '../request/async-requests.js'
import { breakOff, type ClientResponse, closeIfUnread, writeHead } from '../request/client-http.js'
import { endAnswer, hasMuchToSend } from '../request/early-answer.js'
import { addVendorHeaders } from '../vendor/forwarded-headers.js'
import type { ResponseSink, SentAnswer } from '../vendor/sent-answer.js'
import type { VendorAddresses } from '../vendor/vendor-addresses.js'
import {
  type Admitted,
  addAdmittedHeaders,
  addFallbackHeaders,
  addRefusedHeaders,
  degradedItem,
  type FallbackDecision,
} from './decision-headers.js'
import { clientMessage, type Fault, faultOf, RequestError } from './errors.js'
import { cutOff, SseEnd } from './sse-end.js'

/** How a vendor's answer is passed on. */
export interface Passing {
  readonly decision: Admitted
  /** Matches events that the client did not request. */
  readonly drop: ((event: string) => boolean) | undefined
  /** The client should not retry. */
  readonly final: boolean
  readonly addresses: VendorAddresses
  /** Receives a copy of the answer, for later requests that no target answers. */
  readonly copy?: AnswerCopy | undefined
}

const COMMENT = ': waiting\n\n'
const EVENTS = 'text/event-stream'
/** At most this much of a vendor's error body is quoted in an error event. */
const MOST_QUOTED_BYTES = 2_048

export class ResponseWriter implements ResponseSink {
  readonly #response: ClientResponse
  readonly #id: string
  readonly #arrivedMs: number
  readonly #clock: Pick<Clock, 'now' | 'schedule'>
  readonly #hooks: { readonly draining: boolean }
  // Until the route is known, errors have the most common format.
  #protocol: Protocol = openai
  #path = ''
  #added: readonly string[] = []
  #keepAlive: Timer | undefined
  /** The head of a stream was sent before the vendor answered. */
  #promised = false
  #answer: SentAnswer | undefined
  #passing: Passing | undefined
  #frames: SseFrames | undefined
  #streamEnd: SseEnd | undefined
  /** The client reads more slowly than the vendor sends. */
  #full = false
  firstByteMs: number | undefined
  /** Bytes of the vendor's answer that were written, sent or not. */
  passedBytes = 0
  /** The error that ended the response early or was answered instead of it. */
  error: unknown

  constructor(
    response: ClientResponse,
    id: string,
    arrivedMs: number,
    hooks: { readonly draining: boolean; readonly clock: Pick<Clock, 'now' | 'schedule'> },
  ) {
    this.#response = response
    this.#id = id
    this.#arrivedMs = arrivedMs
    this.#hooks = hooks
    this.#clock = hooks.clock
  }

  /** Headers of whatever answer follows; lower-case names and values alternate. */
  addHeaders(headers: readonly string[]): void {
    this.#added = headers
  }

  /** `path`: of the request. */
  useProtocol(protocol: Protocol, path: string): void {
    this.#protocol = protocol
    this.#path = path
  }

  /** Sends a comment every `everyMs` until the answer begins, because proxies close silent connections. */
  keepAlive(everyMs: number): void {
    this.#keepAlive = this.#clock.schedule(everyMs, () => {
      if (!this.#promised) {
        this.#promised = true
        writeHead(this.#response, 200, {
          ...this.#head(),
          'content-type': EVENTS,
          'cache-control': 'no-cache',
        })
      }
      this.#response.write(COMMENT)
      this.keepAlive(everyMs)
    })
  }

  pass(answer: SentAnswer, passing: Passing): void {
    this.#stopWaiting()
    this.#answer = answer
    this.#passing = passing
    const isStream = answer.isEventStream
    if (isStream) {
      this.#frames = new SseFrames(passing.drop)
      // An error with this type does not have the protocol's last event.
      if (answer.ok && this.#protocol.isCutOff !== undefined) this.#streamEnd = new SseEnd()
    } else if (this.#promised) return this.#tooLate(answer)
    answer.pipe(this)
  }

  /** Sends an answer of the gateway itself. */
  sendOwnAnswer({ status, headers, body }: GatewayAnswer): void {
    const response = this.#response
    if (response.destroyed) return
    this.firstByteMs ??= this.#clock.now() - this.#arrivedMs
    const length = { 'content-length': String(Buffer.byteLength(body)) }
    const bodiless = isBodiless(status)
    writeHead(response, status, { ...this.#head(), ...headers, ...(!bodiless && length) })
    response.end(bodiless ? undefined : body)
  }

  /** Sends an answer of a fallback that needs no vendor. */
  fallBack(
    { step, ageMs, status, headers, body }: FallbackAnswer,
    decision: Omit<FallbackDecision, 'step' | 'ageMs'>,
  ): void {
    this.#stopWaiting()
    const response = this.#response
    if (response.destroyed) return
    this.firstByteMs ??= this.#clock.now() - this.#arrivedMs
    const whole = Buffer.from(body)
    this.passedBytes += whole.length
    let closes = this.#hooks.draining || !response.shouldKeepAlive
    if (this.#promised) {
      // The headers have been sent, so a comment in the stream carries the value.
      response.write(`: spillway-degraded: ${degradedItem({ step, ageMs })}\n\n`)
    } else {
      const head = this.#head()
      Object.assign(head, headers, { 'content-length': String(whole.length) })
      addFallbackHeaders(head, { ...decision, step, ageMs }, status)
      // The client may still be sending its body.
      closes ||= hasMuchToSend(response.req)
      if (closes) head.connection = 'close'
      writeHead(response, status, head)
    }
    endAnswer(response, whole, closes)
  }

  /** Sends an error. `lastVendor`: the last vendor that received the request, if any. */
  refuse(error: unknown, fault: Fault, attempts: number, lastVendor: string | undefined): void {
    this.#stopWaiting()
    this.error = error
    const response = this.#response
    if (response.destroyed) return
    if (response.headersSent) return this.#breakOff(fault)
    const headers = this.#head()
    addRefusedHeaders(headers, error instanceof SpillwayError ? error : fault, attempts)
    if (lastVendor !== undefined) headers['spillway-vendor'] = lastVendor
    const closes = fault.closes === true || hasMuchToSend(response.req)
    if (closes) headers.connection = 'close'
    const body = this.#protocol.errorBody(this.#complaint(fault))
    headers['x-request-id'] = this.#id
    headers[this.#protocol.requestIdHeader] = this.#id
    headers['content-type'] = this.#protocol.errorType
    headers['content-length'] = String(Buffer.byteLength(body))
    writeHead(response, fault.status, headers)
    endAnswer(response, body, closes || !response.shouldKeepAlive)
  }

  /** The client has disconnected. */
  abandon(): void {
    this.#stopWaiting()
    this.#response.destroy()
  }

  close(): void {
    this.#stopWaiting()
    this.#passing?.copy?.release()
  }

  // `ResponseSink`: called by the vendor's answer.

  get judgesEnd(): boolean {
    return this.#streamEnd !== undefined
  }

  write(chunk: Buffer): boolean {
    this.#streamEnd?.push(chunk)
    const piece = this.#frames === undefined ? chunk : this.#frames.push(chunk)
    if (piece.length === 0) return !this.#full
    this.#begin(undefined)
    this.passedBytes += piece.length
    this.#passing?.copy?.add(piece)
    if (this.#response.write(piece)) return true
    this.#awaitDrain()
    return false
  }

  faultAtEnd(): Error | undefined {
    return this.#streamEnd?.isCutOff(this.#protocol) === true ? cutOff() : undefined
  }

  end(last: Buffer | undefined): void {
    let piece = last
    if (this.#frames !== undefined) {
      const pieces = last === undefined ? [] : [this.#frames.push(last)]
      piece = Buffer.concat([...pieces, this.#frames.rest()])
    }
    this.#begin(piece?.length ?? 0)
    this.passedBytes += piece?.length ?? 0
    const copy = this.#passing?.copy
    if (copy !== undefined) {
      if (piece !== undefined) copy.add(piece)
      copy.complete()
    }
    const closes = this.#hooks.draining || !this.#response.shouldKeepAlive
    endAnswer(this.#response, piece, closes)
  }

  broken(error: unknown): void {
    this.error = error
    this.#passing?.copy?.release()
    if (this.#response.destroyed) return
    const { vendor, attempts = 0 } = this.#passing?.decision ?? {}
    const fault = faultOf(error, vendor, true)
    try {
      if (this.#response.headersSent) this.#breakOff(fault)
      else this.refuse(error, fault, attempts, vendor)
    } catch {
      // Not even the error can be written.
      this.#response.destroy()
    }
  }

  /** `wholeBytes`: length of the whole body, if it is known. */
  #begin(wholeBytes: number | undefined): void {
    this.firstByteMs ??= this.#clock.now() - this.#arrivedMs
    const response = this.#response
    const answer = this.#answer
    if (response.headersSent || answer === undefined || this.#passing === undefined) return
    const { decision, final, addresses } = this.#passing
    const headers = ['spillway-request-id', this.#id]
    // The gateway's headers replace those of the vendor.
    const ours = decision.standing === undefined ? [] : ['ratelimit', 'ratelimit-policy']
    for (let i = 0; i < this.#added.length; i += 2) {
      const name = this.#added[i] as string
      headers.push(name, this.#added[i + 1] as string)
      if (name !== 'vary') ours.push(name)
    }
    if (this.#hooks.draining) headers.push('connection', 'close')
    addAdmittedHeaders(headers, decision)
    if (final) {
      headers.push('x-should-retry', 'false', 'spillway-retried', '1')
      ours.push('x-should-retry')
    }
    const knowsLength = wholeBytes !== undefined && wholeBytes > 0
    if (this.#frames !== undefined || knowsLength || isBodiless(answer.status)) {
      ours.push('content-length')
    }
    if (this.#frames === undefined && knowsLength) headers.push('content-length', `${wholeBytes}`)
    addVendorHeaders(headers, answer.raw, ours, addresses)
    writeHead(response, answer.status, headers)
  }

  #head(): Record<string, string | string[]> {
    const headers: Record<string, string | string[]> = { 'spillway-request-id': this.#id }
    for (let i = 0; i < this.#added.length; i += 2) {
      headers[this.#added[i] as string] = this.#added[i + 1] as string
    }
    if (this.#hooks.draining) headers.connection = 'close'
    return headers
  }

  /** The head of a stream was sent, but the vendor's answer is not a stream. */
  #tooLate(answer: SentAnswer): void {
    const quoted = answer.beginning.subarray(0, MOST_QUOTED_BYTES).toString()
    const status = answer.ok ? 502 : answer.status
    const message = `the vendor answered with status ${answer.status}: ${quoted}`
    this.error = new RequestError({ status, code: 'VENDOR_ERROR', message })
    answer.cancel()
    this.#breakOff({ status, code: 'VENDOR_ERROR', message })
  }

  /**
   * Ends an incomplete response. Clients of event streams receive an error event. SDKs that read it would report a
   * broken connection as a second error. For all other clients the connection is aborted after everything was sent.
   */
  #breakOff(fault: Fault): void {
    const response = this.#response
    const readsEvents = this.#frames !== undefined || this.#promised
    if (!readsEvents) return breakOff(response, this.#clock)
    const end = this.#streamEnd?.text
    const event = this.#protocol.errorEvent(this.#complaint(fault), this.#path, end)
    if (this.#protocol.endsAfterErrorEvent !== true) return breakOff(response, this.#clock, event)
    closeIfUnread(response, this.#clock)
    endAnswer(response, event, this.#hooks.draining || !response.shouldKeepAlive)
  }

  #complaint(fault: Fault) {
    const { status, code, retryAfterMs } = fault
    const wholeMs = retryAfterMs === undefined ? undefined : Math.max(0, Math.ceil(retryAfterMs))
    const message = clientMessage(fault)
    return { status, code, message, requestId: this.#id, retryAfterMs: wholeMs }
  }

  /** Chunks that the vendor's socket has already read may still be written meanwhile. */
  #awaitDrain(): void {
    if (this.#full) return
    this.#full = true
    this.#response.once('drain', () => {
      this.#full = false
      this.#answer?.resume()
    })
  }

  #stopWaiting(): void {
    this.#keepAlive?.cancel()
  }
}

/** Some clients wait for a body if one of these has a content-length (RFC 9110, 8.6). */
function isBodiless(status: number): boolean {
  return status === 204 || status === 304
}
