/**
 * A vendor's error that is kept while the request is tried again, there or at another target. If no attempt succeeds,
 * the client gets this error and not the gateway's refusal of a later attempt.
 */
import type { Clock } from 'spillway'
import type { Timer } from 'spillway/internal'
import type { ResponseSink, SentAnswer } from './sent-answer.js'
import type { VendorResponse } from './vendor-response.js'

/** Errors are short. A longer one is not kept. */
const MOST_BYTES = 65_536
/** Longest wait for the body, which usually arrives with the head. */
const MOST_MS = 1_000

export class HeldError implements ResponseSink, SentAnswer {
  readonly status: number
  readonly ok = false
  readonly raw: readonly string[]
  readonly judgesEnd = false
  readonly #answer: VendorResponse
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #arrived!: (isWhole: boolean) => void
  /** Whether the whole error has arrived. False: it is too long, too slow, or broke off. */
  readonly whole = new Promise<boolean>((resolve) => {
    this.#arrived = resolve
  })
  readonly #timer: Timer

  constructor(answer: VendorResponse, clock: Pick<Clock, 'schedule'>) {
    this.#answer = answer
    this.status = answer.status
    this.raw = answer.raw
    this.#timer = clock.schedule(MOST_MS, () => this.drop())
    this.#timer.unref()
    answer.pipe(this)
  }

  /** Called when the error is no longer needed. */
  drop(): void {
    this.#end(false)
    this.#answer.cancel()
  }

  // `ResponseSink`: called by the vendor's answer.

  write(chunk: Buffer): boolean {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    if (this.#bytes > MOST_BYTES) this.drop()
    return true
  }

  faultAtEnd(): undefined {}

  end(last: Buffer | undefined): void {
    if (last !== undefined) this.#chunks.push(last)
    this.#end(true)
  }

  broken(): void {
    this.#end(false)
  }

  #end(isWhole: boolean): void {
    this.#timer.cancel()
    this.#arrived(isWhole)
  }

  // `SentAnswer`: read by the writer of the client's response.

  get headers(): VendorResponse {
    return this.#answer.headers
  }

  get isEventStream(): boolean {
    return this.#answer.isEventStream
  }

  get beginning(): Buffer {
    return Buffer.concat(this.#chunks)
  }

  header(name: string): string | undefined {
    return this.#answer.header(name)
  }

  pipe(sink: ResponseSink): void {
    sink.end(this.beginning)
  }

  resume(): void {}

  cancel(): void {}
}
