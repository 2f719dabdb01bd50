/**
 * A vendor's answer on its way through: what undici hears from the vendor's socket is handed to a sink,
 * piece by piece, with nothing in between. To the guard it is a response whose body is passed on by its
 * owner. Nothing is read ahead but what had arrived with the headers.
 */

import { type BodyEnd, type BodyOwner, type BodySigns, RELAYED, type Relayed } from 'spillway'
import type { Dispatcher } from 'undici'

export type Usage = Readonly<Record<string, number>>

/** Where an answer goes. */
export interface AnswerSink {
  /** False: wait for `answer.resume()`. */
  write(chunk: Buffer): boolean
  /** Once, with the last piece if it is at hand. */
  end(last: Buffer | undefined): void
  /** Once, in place of `end`: the rest will not come. */
  broken(error: unknown): void
}

export interface AnswerListener {
  /** The body is over, for the vendor and the guard; the sink has been told. */
  onEnded(how: BodyEnd, usage: Usage | undefined): void
}

/** What arrives before anybody reads is kept up to this; then the vendor's socket waits. */
const MOST_KEPT_BYTES = 65_536

type Headers = Readonly<Record<string, string | string[] | undefined>>

export class VendorAnswer implements Relayed, BodyOwner, Dispatcher.DispatchHandler {
  status = 0
  ok = false
  raw: Headers = {}
  readonly #signal: AbortSignal
  readonly #listener: AnswerListener
  #resolve!: (answer: VendorAnswer) => void
  #reject!: (error: unknown) => void
  #controller: Dispatcher.DispatchController | undefined
  #signs: BodySigns | undefined
  #sink: AnswerSink | undefined
  #kept: Buffer[] = []
  #keptBytes = 0
  /** The vendor has sent everything, or has broken off. */
  #vendorEnd: { error?: unknown } | undefined
  #over = false
  #onBegun: (() => void) | undefined

  constructor(signal: AbortSignal, listener: AnswerListener) {
    this.#signal = signal
    this.#listener = listener
  }

  /** Resolves when the answer has begun: status and headers are there. */
  askedOf(dispatcher: Dispatcher, request: Dispatcher.DispatchOptions): Promise<VendorAnswer> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
      this.#signal.addEventListener('abort', this.#onAbort)
      dispatcher.dispatch(request, this)
    })
  }

  /** As a response has them. */
  readonly headers = { get: (name: string): string | null => this.header(name) ?? null }

  header(name: string): string | undefined {
    const value = this.raw[name]
    return Array.isArray(value) ? value.join(', ') : value
  }

  /** As a response has it, for whoever does not want the rest. */
  readonly body = { cancel: (): void => this.cancel() }

  cancel(): void {
    if (this.#over) return
    this.#signs?.left()
    this.#finish(new DOMException('nobody reads this answer', 'AbortError'))
  }

  // What the guard says.

  [RELAYED](signs: BodySigns): BodyOwner {
    this.#signs = signs
    return this
  }

  breakOff(error: unknown): void {
    if (this.#over) return
    this.#finish(error)
    this.#sink?.broken(error)
  }

  ended(how: BodyEnd, usage: Usage | undefined): void {
    this.#listener.onEnded(how, usage)
  }

  // What the reader says.

  /**
   * Nothing, if a piece is there already, or it is known that none will come; otherwise when that is
   * so. From here on silence counts.
   */
  begin(): Promise<void> | undefined {
    if (this.#hasBegun()) return undefined
    this.#signs?.reading()
    return new Promise((resolve) => {
      this.#onBegun = resolve
    })
  }

  /** What broke it off before its first piece, if anything did. */
  get failedAtOnce(): { error: unknown } | undefined {
    if (this.#kept.length > 0) return undefined
    return this.#brokenBy
  }

  pipe(sink: AnswerSink): void {
    this.#sink = sink
    const kept = this.#kept
    this.#kept = []
    const complete = this.#vendorEnd !== undefined && !('error' in this.#vendorEnd)
    const last = complete ? kept.pop() : undefined
    this.#signs?.reading()
    let flowing = true
    for (const chunk of kept) flowing = this.#pass(chunk) && flowing
    if (this.#over) return
    if (complete) return this.#complete(last)
    if (this.#brokenBy !== undefined) return this.#breakDown(this.#brokenBy.error)
    if (flowing) this.resume()
    else this.#pause()
  }

  /** The sink has room again. */
  resume(): void {
    if (this.#over) return
    this.#signs?.reading()
    this.#controller?.resume()
  }

  // What the vendor's socket says.

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#over || this.#signal.aborted) controller.abort(asError(this.#signal.reason))
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: Headers): void {
    // 1xx is a word in between.
    if (status < 200) return
    this.status = status
    this.ok = status < 300
    this.raw = headers
    this.#resolve(this)
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#over) return
    if (this.#sink !== undefined) {
      if (!this.#pass(chunk)) this.#pause()
      return
    }
    this.#kept.push(chunk)
    this.#keptBytes += chunk.length
    if (this.#keptBytes >= MOST_KEPT_BYTES) this.#controller?.pause()
    this.#onBegun?.()
  }

  onResponseEnd(): void {
    if (this.#over) return
    this.#vendorEnd = {}
    if (this.#sink !== undefined) this.#complete(undefined)
    else this.#onBegun?.()
  }

  onResponseError(_: unknown, error: Error): void {
    if (this.status === 0) {
      this.#over = true
      this.#forgetSignal()
      this.#reject(error)
    } else if (!this.#over && !this.#signal.aborted) {
      // If we aborted it ourselves, the guard says what that means.
      this.#vendorEnd = { error }
      if (this.#sink !== undefined) this.#breakDown(error)
      else this.#onBegun?.()
    }
  }

  readonly #onAbort = (): void => {
    const { reason } = this.#signal
    if (this.#over) return
    if (this.status === 0) {
      this.#over = true
      this.#reject(reason)
    }
    this.#controller?.abort(asError(reason))
    this.#forgetSignal()
  }

  get #brokenBy(): { error: unknown } | undefined {
    return this.#vendorEnd !== undefined && 'error' in this.#vendorEnd
      ? { error: this.#vendorEnd.error }
      : undefined
  }

  #hasBegun(): boolean {
    return this.#kept.length > 0 || this.#vendorEnd !== undefined || this.#over
  }

  #pass(chunk: Buffer): boolean {
    this.#signs?.chunk(chunk)
    if (this.#over) return true
    const wantsMore = this.#sink?.write(chunk) !== false
    if (wantsMore) this.#signs?.reading()
    return wantsMore
  }

  #pause(): void {
    if (this.#over) return
    this.#controller?.pause()
    this.#signs?.resting()
  }

  #complete(last: Buffer | undefined): void {
    this.#over = true
    this.#forgetSignal()
    if (last !== undefined) this.#signs?.chunk(last)
    this.#sink?.end(last)
    this.#signs?.complete()
  }

  #breakDown(error: unknown): void {
    this.#over = true
    this.#forgetSignal()
    this.#signs?.truncated(error)
    this.#sink?.broken(error)
  }

  /** Lets the vendor go. */
  #finish(error: unknown): void {
    this.#over = true
    this.#vendorEnd ??= { error }
    this.#forgetSignal()
    this.#controller?.abort(asError(error))
    this.#onBegun?.()
  }

  #forgetSignal(): void {
    this.#signal.removeEventListener('abort', this.#onAbort)
  }
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new DOMException('aborted', 'AbortError')
}
