/**
 * A vendor's answer on its way through: what is heard from the vendor's socket is handed to a sink,
 * piece by piece, with nothing in between. To the guard it is a response whose body is passed on by its
 * owner. Nothing is read ahead but what had arrived with the headers.
 */

import type { CallContext } from 'spillway'
import {
  type BodyEnd,
  type BodyOwner,
  type BodySigns,
  RELAYED,
  type Relayed,
} from 'spillway/internal'
import { cutOff } from '../response/sse-end.js'
import { headerValue } from './forwarded-headers.js'
import type { PendingRequest, VendorHandler } from './vendor-client.js'
import { neverConnected } from './vendor-error.js'

export type Usage = Readonly<Record<string, number>>

/** Where an answer goes. */
export interface ResponseSink {
  /** It has to have seen everything before it knows whether that was all. */
  readonly judgesEnd: boolean
  /** False: wait for `answer.resume()`. */
  write(chunk: Buffer): boolean
  /** All has come that will, and been written: why that is not the whole answer, if it is not. */
  faultAtEnd(): Error | undefined
  /** Once, with the last piece if it is at hand. */
  end(last: Buffer | undefined): void
  /** Once, in place of `end`: the rest will not come. */
  broken(error: unknown): void
}

export interface ResponseListener {
  /** The body is over, for the vendor and the guard. */
  onEnded(how: BodyEnd, usage: Usage | undefined, status: number): void
}

/**
 * `asking`: no answer yet. `open`: it comes in. `arrived`: all of it has come, and part of it is still
 * here. `over`: everything has been passed on, or never will be.
 */
type State =
  | { readonly kind: 'asking' }
  | { readonly kind: 'open' }
  | { readonly kind: 'arrived' }
  | { readonly kind: 'over'; readonly error?: unknown }

const ASKING: State = { kind: 'asking' }
const OPEN: State = { kind: 'open' }
const ARRIVED: State = { kind: 'arrived' }
const PASSED: State = { kind: 'over' }

const EVENTS = 'text/event-stream'
/** What arrives before anybody reads is kept up to this; then the vendor's socket waits. */
const MOST_KEPT_BYTES = 65_536

export class VendorResponse implements Relayed, BodyOwner, VendorHandler {
  status = 0
  ok = false
  /** Names in small letters and values in turn, all of them such as may be written into another head. */
  raw: readonly string[] = []
  readonly #context: Pick<CallContext, 'onAbort'>
  readonly #listener: ResponseListener
  readonly #onNothing: (() => void) | undefined
  #pending: PendingRequest | undefined
  #paused = false
  #state: State = ASKING
  #resolve!: (answer: VendorResponse) => void
  #reject!: (error: unknown) => void
  #signs: BodySigns | undefined
  #sink: ResponseSink | undefined
  #kept: Buffer[] = []
  #keptBytes = 0
  /** It broke while pieces of it were still here: told once those have been passed on. */
  #broken: { readonly error: unknown } | undefined
  #onBegun: (() => void) | undefined
  /** By the guard, which says what that means. */
  #aborted = false

  /** `onNothing`: it has cost nothing, as far as one can tell from how it begins. */
  constructor(
    context: Pick<CallContext, 'onAbort'>,
    listener: ResponseListener,
    onNothing?: () => void,
  ) {
    this.#context = context
    this.#listener = listener
    this.#onNothing = onNothing
  }

  /** Resolves when the answer has begun: status and headers are there. */
  askedBy(ask: (handler: VendorHandler) => PendingRequest): Promise<VendorResponse> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
      this.#context.onAbort((reason) => this.#abort(reason))
      if (this.#state.kind === 'asking') this.#pending = ask(this)
    })
  }

  /** As a response has them: with a `get`. */
  get headers(): this {
    return this
  }

  get(name: string): string | null {
    return this.header(name) ?? null
  }

  header(name: string): string | undefined {
    return headerValue(this.raw, name)
  }

  /** As a response has it, for whoever does not want the rest: with a `cancel`. */
  get body(): this {
    return this
  }

  /** Nobody wants the rest. */
  cancel(): void {
    if (this.#state.kind === 'over') return
    this.#letGo(new DOMException('nobody reads this answer', 'AbortError'))
    this.#signs?.left()
  }

  // What the guard says.

  [RELAYED](signs: BodySigns): BodyOwner {
    this.#signs = signs
    return this
  }

  breakOff(error: unknown): void {
    if (this.#state.kind === 'over') return
    this.#letGo(error)
    this.#sink?.broken(error)
  }

  ended(how: BodyEnd, usage: Usage | undefined): void {
    this.#listener.onEnded(how, usage, this.status)
  }

  // What the reader says.

  /**
   * Nothing, if a piece is there already, or it is known that none will come; otherwise when that is
   * so. From here on silence counts.
   */
  begin(): Promise<void> | undefined {
    if (this.#broken !== undefined && this.#kept.length === 0) this.#breakDown(this.#broken.error)
    if (this.#kept.length > 0 || this.#state.kind !== 'open') return undefined
    this.#signs?.reading()
    return new Promise((resolve) => {
      this.#onBegun = resolve
    })
  }

  /** Of events, which can be told apart: of compressed ones they cannot. */
  get isEventStream(): boolean {
    if (this.header('content-type')?.toLowerCase().startsWith(EVENTS) !== true) return false
    const encoding = this.header('content-encoding')
    return encoding === undefined || encoding === 'identity'
  }

  /** The client asked for a stream: one without a single event is none. */
  demandEvents(): void {
    const isEmpty = this.#state.kind === 'arrived' && this.#kept.length === 0
    if (isEmpty && this.status === 200 && this.isEventStream) this.#breakDown(cutOff())
  }

  /** What broke it off before its first piece was passed on, if anything did. */
  get failure(): { readonly error: unknown } | undefined {
    return this.#state.kind === 'over' && 'error' in this.#state
      ? { error: this.#state.error }
      : undefined
  }

  /** What has come so far and was not passed on. */
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

  /** The sink has room again. */
  resume(): void {
    if (this.#state.kind !== 'open') return
    this.#signs?.reading()
    if (!this.#paused) return
    this.#paused = false
    this.#pending?.resume()
  }

  // What the vendor's socket says.

  onHead(status: number, headers: string[]): void {
    if (this.#state.kind !== 'asking') return
    this.status = status
    this.ok = status < 300
    this.raw = headers
    this.#state = OPEN
    if (status >= 400) this.#onNothing?.()
    this.#resolve(this)
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
    this.#onBegun?.()
    return !this.#paused
  }

  onComplete(): void {
    if (this.#state.kind !== 'open') return
    this.#state = ARRIVED
    if (this.#sink !== undefined) this.#passAll([])
    else this.#onBegun?.()
  }

  onError(error: Error): void {
    if (this.#state.kind === 'asking') {
      this.#state = { kind: 'over', error }
      if (neverConnected(error)) this.#onNothing?.()
      this.#reject(error)
      // If we aborted it ourselves, the guard says what that means.
    } else if (this.#state.kind === 'open' && !this.#aborted) {
      this.#broken = { error }
      const waiting = this.#sink === undefined && this.#kept.length > 0
      // Before the guard watches, nobody could be told.
      if (!waiting && this.#signs !== undefined) this.#breakDown(error)
      this.#onBegun?.()
    }
  }

  #abort(reason: unknown): void {
    this.#aborted = true
    this.#pending?.abort(asError(reason))
    if (this.#state.kind !== 'asking') return
    this.#state = { kind: 'over', error: reason }
    this.#reject(reason)
  }

  #pass(chunk: Buffer): boolean {
    this.#signs?.chunk(chunk)
    if (this.#state.kind === 'over') return true
    const wantsMore = this.#sink?.write(chunk) !== false
    if (wantsMore) this.#signs?.reading()
    return wantsMore
  }

  /** What is left, the last piece together with the end. */
  #passAll(kept: Buffer[]): void {
    const last = this.#sink?.judgesEnd === true ? undefined : kept.pop()
    for (const chunk of kept) this.#pass(chunk)
    if (last !== undefined) this.#signs?.chunk(last)
    if (this.#state.kind === 'over') return
    const fault = this.#sink?.faultAtEnd()
    if (fault !== undefined) return this.#breakDown(fault)
    this.#state = PASSED
    this.#sink?.end(last)
    this.#signs?.complete()
  }

  #pause(): void {
    if (this.#state.kind !== 'open') return
    this.#paused = true
    this.#signs?.resting()
  }

  /** The vendor broke off. */
  #breakDown(error: unknown): void {
    this.#state = { kind: 'over', error }
    this.#signs?.truncated(error)
    this.#sink?.broken(error)
  }

  /** We do. */
  #letGo(error: unknown): void {
    this.#state = { kind: 'over', error }
    this.#pending?.abort(asError(error))
    this.#onBegun?.()
  }
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new DOMException('aborted', 'AbortError')
}
