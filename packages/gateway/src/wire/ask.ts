/** What is asked of a vendor, and what is heard of the answer. The same for whoever carries it. */
import type { Dispatcher } from 'undici'

export interface WireRequest {
  readonly method: Dispatcher.HttpMethod
  /** With the query. */
  readonly path: string
  /** Names and values in turn. */
  readonly headers: string[]
  /** So many of `headers`, from the first, are as a `FieldReader` has read them. None, unless it is said. */
  readonly trustedUpTo?: number
  readonly body: Buffer | string | AsyncIterable<Buffer> | undefined
}

/** Told in this order, and of errors at most once, in place of the rest. */
export interface WireHandler {
  /** Names in small letters and values in turn, all of them such as may be written into another head. */
  onHead(status: number, headers: string[]): void
  /** False: no more until it is resumed, but for what has been read already. */
  onData(piece: Buffer): boolean
  onComplete(): void
  onError(error: Error): void
}

/** A request that is under way. */
export interface Asking {
  /** Nobody wants it any more: nothing is told of it from now on. */
  abort(error: Error): void
  resume(): void
}
