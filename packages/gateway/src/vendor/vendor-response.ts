/**
 * A vendor's answer on its way to the client. Each chunk from the vendor's socket is written to a sink without a stream
 * in between. The guard sees a response whose body is relayed by its owner (`RELAYED`). Until a sink is attached,
 * chunks are kept up to `MOST_KEPT_BYTES`.
 */

import type { CallContext, Clock } from 'spillway'
import {
  type BodyEnd,
  type BodyOwner,
  type BodySigns,
  type ErrorTable,
  RELAYED,
  type Relayed,
  systemClock,
  type TokenUsage,
  type UsageFormat,
} from 'spillway/internal'
import { cutOff } from '../response/sse-end.js'
import { ErrorBody, MOST_ERROR_BYTES } from './error-body.js'
import { headerValue } from './forwarded-headers.js'
import type { ResponseSink, SentAnswer } from './sent-answer.js'
import type { PendingRequest, VendorHandler } from './vendor-client.js'
import { neverConnected } from './vendor-error.js'

export interface ResponseListener {
  /** The body has ended and the guard has released the call. */
  onEnded(how: BodyEnd, usage: TokenUsage | undefined, status: number): void
  /** The answer is an error, and another attempt follows. True: the listener keeps it, in case no attempt succeeds. */
  holdsError(answer: VendorResponse): boolean
}

/**
 * `waiting`: no answer yet. `open`: the body is arriving. `arrived`: all of it has arrived, and a part is still kept.
 * `over`: everything was passed on, or the answer failed.
 */
type State =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'open' }
  | { readonly kind: 'arrived' }
  | { readonly kind: 'over'; readonly error?: unknown }

const WAITING: State = { kind: 'waiting' }
const OPEN: State = { kind: 'open' }
const ARRIVED: State = { kind: 'arrived' }
const PASSED: State = { kind: 'over' }

const EVENTS = 'text/event-stream'
/** Bytes that are kept until a sink is attached. Beyond that the vendor's socket is paused. */
const MOST_KEPT_BYTES = 65_536

/** How the bodies of answers are read. */
interface AnswerFormat {
  readonly usage?: UsageFormat | undefined
  readonly errors?: ErrorTable | undefined
}

export class VendorResponse implements Relayed, BodyOwner, VendorHandler, SentAnswer {
  status = 0
  ok = false
  /** The vendor did not process the request, because it rejected the configured key. */
  rejectsKey = false
  /** The limit of one model is used up for this key: another key may have some left. */
  exhaustsModel = false
  /** Lower-case names and values alternate; all of them are valid in another head. */
  raw: readonly string[] = []
  readonly #context: Pick<CallContext, 'onAbort'>
  readonly #listener: ResponseListener
  readonly #onNoCost: (() => void) | undefined
  readonly usageFormat: UsageFormat | undefined
  readonly #errors: ErrorTable | undefined
  /** Set while the body of an error is awaited. */
  #errorBody: ErrorBody | undefined
  readonly #clock: Pick<Clock, 'schedule' | 'wallMs'>
  #pending: PendingRequest | undefined
  #paused = false
  #state: State = WAITING
  #resolve!: (answer: VendorResponse) => void
  #reject!: (error: unknown) => void
  #onAnswer: ((answer: VendorResponse | undefined) => void) | undefined
  #signs: BodySigns | undefined
  #sink: ResponseSink | undefined
  #kept: Buffer[] = []
  #keptBytes = 0
  /** The vendor's answer failed while chunks were kept. Reported after those have been passed on. */
  #broken: { readonly error: unknown } | undefined
  #onBegun: (() => void) | undefined
  /** Aborted by the guard, which reports the reason itself. */
  #aborted = false
  /** Another attempt follows, so the end of this answer is not reported to the listener. */
  #held = false

  /** `onNoCost`: called if the request cost no tokens: an error status, or no connection. */
  constructor(
    context: Pick<CallContext, 'onAbort'>,
    listener: ResponseListener,
    onNoCost?: () => void,
    reads: AnswerFormat = {},
    clock: Pick<Clock, 'schedule' | 'wallMs'> = systemClock,
  ) {
    this.usageFormat = reads.usage
    this.#errors = reads.errors
    this.#clock = clock
    this.#context = context
    this.#listener = listener
    this.#onNoCost = onNoCost
  }

  /**
   * Resolves when status and headers have arrived, and rejects if they do not. Before that it calls `onAnswer` once, with
   * the answer or without one.
   */
  start(
    dispatch: (handler: VendorHandler) => PendingRequest,
    onAnswer?: (answer: VendorResponse | undefined) => void,
  ): Promise<VendorResponse> {
    this.#onAnswer = onAnswer
    return new Promise((resolve, reject) => {
      // Kept without wrapper functions, which would retain 13 kB of each request until its end.
      this.#resolve = resolve
      this.#reject = reject
      this.#context.onAbort((reason) => this.#abort(reason))
      if (this.#state.kind !== 'waiting') return
      try {
        this.#pending = dispatch(this)
      } catch (error) {
        this.onError(error as Error)
      }
    })
  }

  /** Like `Response.headers`, with `get` only. */
  get headers(): this {
    return this
  }

  get(name: string): string | null {
    return this.header(name) ?? null
  }

  header(name: string): string | undefined {
    return headerValue(this.raw, name)
  }

  /** Like `Response.body`, with `cancel` only. */
  get body(): this {
    return this
  }

  /** Drops the rest of the answer. Also called by the guard, before it tries again. */
  cancel(): void {
    if (this.#state.kind === 'over') return
    if (this.status >= 400 && !this.#held) {
      this.#held = this.#listener.holdsError(this)
      if (this.#held) return
    }
    this.#letGo(new DOMException('the answer was cancelled', 'AbortError'))
    this.#signs?.left()
  }

  // Called by the guard.

  [RELAYED](signs: BodySigns): BodyOwner {
    this.#signs = signs
    return this
  }

  breakOff(error: unknown): void {
    if (this.#state.kind === 'over') return
    this.#letGo(error)
    this.#sink?.broken(error)
  }

  ended(how: BodyEnd, usage: TokenUsage | undefined): void {
    if (!this.#held) this.#listener.onEnded(how, usage, this.status)
  }

  // Called by the exchange and the sink.

  /**
   * Resolves when the first chunk has arrived or the answer has ended; undefined if that is already so. The idle
   * timeout of the guard runs from here on.
   */
  begin(): Promise<void> | undefined {
    if (this.#broken !== undefined && this.#kept.length === 0) this.#breakDown(this.#broken.error)
    if (this.#kept.length > 0 || this.#state.kind !== 'open') return undefined
    this.#signs?.reading()
    return new Promise((resolve) => {
      this.#onBegun = resolve
    })
  }

  /** An event stream that is not compressed, so that its events can be read. */
  get isEventStream(): boolean {
    if (this.header('content-type')?.toLowerCase().startsWith(EVENTS) !== true) return false
    const encoding = this.header('content-encoding')
    return encoding === undefined || encoding === 'identity'
  }

  /** For requests with `stream: true`: an answer without a single event is a failure. */
  demandEvents(): void {
    const isEmpty = this.#state.kind === 'arrived' && this.#kept.length === 0
    if (isEmpty && this.status === 200 && this.isEventStream) this.#breakDown(cutOff())
  }

  /** The error that ended the answer, if any. */
  get failure(): { readonly error: unknown } | undefined {
    return this.#state.kind === 'over' && 'error' in this.#state
      ? { error: this.#state.error }
      : undefined
  }

  /** The kept bytes. */
  get beginning(): Buffer {
    return Buffer.concat(this.#kept)
  }

  pipe(sink: ResponseSink): void {
    this.#sink = sink
    if (this.failure !== undefined) return sink.broken(this.failure.error)
    const kept = this.#kept
    this.#kept = []
    if (this.#state.kind === 'arrived') return this.#passAll(kept)
    this.#signs?.reading()
    let flowing = true
    for (const chunk of kept) flowing = this.#pass(chunk) && flowing
    if (this.#state.kind === 'over') return
    if (this.#broken !== undefined) this.#breakDown(this.#broken.error)
    else if (flowing) this.resume()
    else this.#pause()
  }

  /** The sink accepts more chunks. */
  resume(): void {
    if (this.#state.kind !== 'open') return
    this.#signs?.reading()
    if (!this.#paused) return
    this.#paused = false
    this.#pending?.resume()
  }

  // Called by the vendor client.

  onHead(status: number, headers: string[]): void {
    if (this.#state.kind !== 'waiting') return
    this.status = status
    this.ok = status < 300
    this.raw = headers
    this.#state = OPEN
    if (status < 400) return this.#begun()
    this.#onNoCost?.()
    if (this.#errors === undefined) return this.#begun()
    this.#errorBody = new ErrorBody(this.#errors, this.#clock, () => this.#readError())
  }

  #begun(): void {
    this.#answered(this)
    this.#resolve(this)
  }

  #failed(error: unknown): void {
    this.#answered(undefined)
    this.#reject(error)
  }

  #answered(answer: VendorResponse | undefined): void {
    const onAnswer = this.#onAnswer
    this.#onAnswer = undefined
    onAnswer?.(answer)
  }

  /** The body of an error has arrived, or enough of it: its kind decides what happens next. */
  #readError(): void {
    const awaited = this.#takeErrorBody()
    if (awaited === undefined) return
    awaited.read(this, this.beginning)
    this.#begun()
  }

  #takeErrorBody(): ErrorBody | undefined {
    const awaited = this.#errorBody
    this.#errorBody = undefined
    awaited?.close()
    return awaited
  }

  /** False: no more until it is resumed. */
  onData(chunk: Buffer): boolean {
    if (this.#state.kind !== 'open') return true
    if (this.#sink !== undefined) {
      if (!this.#pass(chunk)) this.#pause()
      return !this.#paused
    }
    this.#kept.push(chunk)
    this.#keptBytes += chunk.length
    if (this.#keptBytes >= MOST_KEPT_BYTES) this.#paused = true
    if (this.#keptBytes >= MOST_ERROR_BYTES) this.#readError()
    this.#onBegun?.()
    return !this.#paused
  }

  onComplete(): void {
    if (this.#state.kind !== 'open') return
    this.#state = ARRIVED
    this.#readError()
    if (this.#sink !== undefined) this.#passAll([])
    else this.#onBegun?.()
  }

  onError(error: Error): void {
    if (this.#state.kind === 'waiting') {
      this.#state = { kind: 'over', error }
      if (neverConnected(error)) this.#onNoCost?.()
      this.#failed(error)
      // After an abort by the guard, the guard reports the reason.
    } else if (this.#state.kind === 'open' && !this.#aborted) {
      this.#broken = { error }
      this.#readError()
      const waiting = this.#sink === undefined && this.#kept.length > 0
      // Before the guard calls `[RELAYED]` the error is only remembered; `begin` or `pipe` reports it.
      if (!waiting && this.#signs !== undefined) this.#breakDown(error)
      this.#onBegun?.()
    }
  }

  #abort(reason: unknown): void {
    this.#aborted = true
    this.#pending?.abort(asError(reason))
    if (this.#takeErrorBody() === undefined && this.#state.kind !== 'waiting') return
    this.#state = { kind: 'over', error: reason }
    this.#failed(reason)
  }

  #pass(chunk: Buffer): boolean {
    this.#signs?.chunk(chunk)
    if (this.#state.kind === 'over') return true
    const wantsMore = this.#toSink((sink) => sink.write(chunk)) !== false
    if (this.#isOver) return true
    if (wantsMore) this.#signs?.reading()
    return wantsMore
  }

  /** Passes on the kept chunks, and the last one together with the end. */
  #passAll(kept: Buffer[]): void {
    const last = this.#sink?.judgesEnd === true ? undefined : kept.pop()
    for (const chunk of kept) this.#pass(chunk)
    if (last !== undefined) this.#signs?.chunk(last)
    if (this.#state.kind === 'over') return
    const fault = this.#sink?.faultAtEnd()
    if (fault !== undefined) return this.#breakDown(fault)
    this.#toSink((sink) => sink.end(last))
    if (this.#isOver) return
    this.#state = PASSED
    this.#signs?.complete()
  }

  /**
   * Node throws if it cannot write the vendor's headers. undici calls these functions from its parser, where an
   * exception would reach neither the guard nor the client.
   */
  #toSink<T>(call: (sink: ResponseSink) => T): T | undefined {
    const sink = this.#sink
    if (sink === undefined) return undefined
    try {
      return call(sink)
    } catch (error) {
      this.#letGo(error)
      this.#signs?.left()
      sink.broken(error)
      return undefined
    }
  }

  get #isOver(): boolean {
    return this.#state.kind === 'over'
  }

  #pause(): void {
    if (this.#state.kind !== 'open') return
    this.#paused = true
    this.#signs?.resting()
  }

  /** The vendor ended the answer early. */
  #breakDown(error: unknown): void {
    this.#state = { kind: 'over', error }
    this.#signs?.truncated(error)
    this.#sink?.broken(error)
  }

  /** The gateway ends the answer early. */
  #letGo(error: unknown): void {
    this.#state = { kind: 'over', error }
    this.#pending?.abort(asError(error))
    this.#onBegun?.()
  }
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new DOMException('aborted', 'AbortError')
}
