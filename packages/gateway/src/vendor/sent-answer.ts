/** An answer on its way to the client, and what receives it. Implemented by `VendorResponse` and `HeldError`. */

/** Receives the body of an answer. */
export interface ResponseSink {
  /** It needs every chunk by `write` before `faultAtEnd` can decide whether the answer is complete. */
  readonly judgesEnd: boolean
  /** False: wait for `answer.resume()`. */
  write(chunk: Buffer): boolean
  /** Called after the last chunk. An error if the answer is incomplete. */
  faultAtEnd(): Error | undefined
  /** Called once, with the last chunk if that was not written yet. */
  end(last: Buffer | undefined): void
  /** Called once instead of `end`: the rest of the answer will not arrive. */
  broken(error: unknown): void
}

/** An answer that can be sent to the client. */
export interface SentAnswer {
  readonly status: number
  readonly ok: boolean
  /** Lower-case names and values alternate; all of them are valid in another head. */
  readonly raw: readonly string[]
  readonly headers: { get(name: string): string | null }
  readonly isEventStream: boolean
  /** The bytes that have arrived. */
  readonly beginning: Buffer
  header(name: string): string | undefined
  pipe(sink: ResponseSink): void
  resume(): void
  cancel(): void
}
