/** Limits the memory that all held request bodies of this process take together (`body.maxTotalBytes`). */
import { RequestError } from '../../response/errors.js'

const RETRY_AFTER_MS = 1_000

export class BodyMemory {
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  /** Throws a refusal if the bodies would exceed `maxTotalBytes` with these bytes. */
  take(bytes: number, maxTotalBytes: number): void {
    if (this.#bytes + bytes > maxTotalBytes) throw tooManyBodies(maxTotalBytes)
    this.#bytes += bytes
  }

  giveBack(bytes: number): void {
    this.#bytes -= bytes
  }
}

function tooManyBodies(maxTotalBytes: number): RequestError {
  return new RequestError({
    status: 503,
    code: 'BODY_MEMORY_FULL',
    message: `the bodies of running requests have reached body.maxTotalBytes (${maxTotalBytes} bytes); retry later`,
    retryAfterMs: RETRY_AFTER_MS,
  })
}
