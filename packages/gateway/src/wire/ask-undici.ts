/** The long way, for what the short one does not do: a request whose body is still coming. */
import type { Dispatcher } from 'undici'
import { answerFields } from './answer-head.js'
import type { Asking, WireHandler, WireRequest } from './ask.js'
import { isHeaderValue } from './header-line.js'
import { latin1 } from './latin1.js'
import { malformed } from './wire-error.js'

export function askUndici(
  dispatcher: Dispatcher,
  { method, path, headers, body }: WireRequest,
  handler: WireHandler,
): Asking {
  const relay = new Relay(handler)
  // undici takes an iterable, though its types do not say so here.
  dispatcher.dispatch({ method, path, headers, body: body as Buffer | string | null }, relay)
  return relay
}

/**
 * undici has newer names for these; what they are called by makes an object of all headers for each
 * answer, and reads them as UTF-8, which they are not.
 */
class Relay implements Dispatcher.DispatchHandler, Asking {
  readonly #handler: WireHandler
  #abort: ((error: Error) => void) | undefined
  #resume: (() => void) | undefined
  #aborted: Error | undefined
  #begun = false

  constructor(handler: WireHandler) {
    this.#handler = handler
  }

  abort(error: Error): void {
    this.#aborted ??= error
    this.#abort?.(error)
  }

  resume(): void {
    this.#resume?.()
  }

  onConnect(abort: (error: Error) => void): void {
    this.#abort = abort
    if (this.#aborted !== undefined) abort(this.#aborted)
  }

  onHeaders(status: number, raw: Buffer[], resume: () => void): boolean {
    // 1xx is a word in between.
    if (status < 200 || this.#begun || this.#aborted !== undefined) return true
    this.#begun = true
    this.#resume = resume
    const headers: string[] = []
    for (let i = 0; i < raw.length; i += 2) {
      const value = latin1(raw[i + 1] as Buffer)
      // undici's parser refuses these, too, but nobody looks at them again.
      if (!isHeaderValue(value))
        throw malformed('has characters in its head that must not be there')
      headers.push(answerFields.name(latin1(raw[i] as Buffer)), value)
    }
    this.#handler.onHead(status, headers)
    return true
  }

  onData(chunk: Buffer): boolean {
    return this.#aborted !== undefined || this.#handler.onData(chunk)
  }

  onComplete(): void {
    if (this.#aborted === undefined) this.#handler.onComplete()
  }

  onError(error: Error): void {
    if (this.#aborted === undefined) this.#handler.onError(error)
  }
}
