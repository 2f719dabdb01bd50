/**
 * Aborting a fetch without giving it a signal, which costs it an eighth of its time. Node's fetch, as
 * undici's, sends by a dispatcher; with one of ours in between we hold what aborts the request.
 *
 * A fetch is trusted to do so once it has been seen to: the first time it gets a signal, too.
 */
type Handler = Record<string, (...args: unknown[]) => unknown>

export interface Dispatcher {
  readonly isMockActive?: boolean
  dispatch(options: unknown, handler: Handler): boolean
}

/** Where undici, and so Node, keeps the dispatcher of all requests that name none. */
const GLOBAL_DISPATCHER = Symbol.for('undici.globalDispatcher.1')

const known = new WeakSet<object>()

/** Whether it goes by the dispatcher it is given, as far as has been seen. */
export function heedsDispatcher(fetch: object): boolean {
  return known.has(fetch)
}

/** The one a request would go by; nothing in a Node that keeps it elsewhere. */
export function dispatcherOf(init: object): Dispatcher | undefined {
  const { dispatcher } = init as { dispatcher?: Dispatcher }
  return dispatcher ?? (globalThis as { [GLOBAL_DISPATCHER]?: Dispatcher })[GLOBAL_DISPATCHER]
}

/** One request, redirects included, on its way through the dispatcher behind. */
export class Unsignalled implements Dispatcher {
  readonly #behind: Dispatcher
  readonly #fetch: object
  #abort: ((reason: unknown) => void) | undefined
  #aborted: { reason: unknown } | undefined
  #passing: Passing | undefined

  constructor(behind: Dispatcher, fetch: object) {
    this.#behind = behind
    this.#fetch = fetch
  }

  get isMockActive(): boolean {
    return this.#behind.isMockActive === true
  }

  dispatch(options: unknown, handler: Handler): boolean {
    known.add(this.#fetch)
    const passing =
      'onRequestStart' in handler ? new NewNames(this, handler) : new OldNames(this, handler)
    this.#abort = undefined
    this.#passing = passing
    if (this.#aborted !== undefined) {
      passing.fail(this.#aborted.reason)
      return true
    }
    return this.#behind.dispatch(options, passing as unknown as Handler)
  }

  /** It is on a connection; from now on this ends it. */
  begun(abort: (reason: unknown) => void): void {
    if (this.#aborted === undefined) this.#abort = abort
    else abort(this.#aborted.reason)
  }

  abort(reason: unknown): void {
    if (this.#aborted !== undefined) return
    this.#aborted = { reason }
    // Waiting for a connection: nobody waits for it any more, and it will not be sent.
    if (this.#abort === undefined) this.#passing?.fail(reason)
    else this.#abort(reason)
  }
}

/** Between the dispatcher and the fetch: passes all on, and takes note of what aborts the request. */
abstract class Passing {
  protected readonly request: Unsignalled
  /** Nothing, once the fetch was told that it is over. */
  protected to: Handler | undefined

  constructor(request: Unsignalled, to: Handler) {
    this.request = request
    this.to = to
  }

  abstract fail(reason: unknown): void
}

/** By the names handlers had up to undici 6, and which those of fetch have kept. */
class OldNames extends Passing {
  onConnect(abort: (reason: unknown) => void, context: unknown): unknown {
    this.request.begun(abort)
    return this.to?.onConnect?.(abort, context)
  }

  onResponseStarted(): unknown {
    return this.to?.onResponseStarted?.()
  }

  onUpgrade(status: unknown, headers: unknown, socket: unknown): unknown {
    return this.to?.onUpgrade?.(status, headers, socket)
  }

  onHeaders(status: unknown, headers: unknown, resume: unknown, text: unknown): unknown {
    return this.to?.onHeaders?.(status, headers, resume, text)
  }

  onData(chunk: unknown): unknown {
    return this.to?.onData?.(chunk)
  }

  onComplete(trailers: unknown): unknown {
    return this.to?.onComplete?.(trailers)
  }

  onError(error: unknown): unknown {
    return this.to?.onError?.(error)
  }

  fail(reason: unknown): void {
    this.to?.onError?.(reason)
    this.to = undefined
  }
}

interface Controller {
  abort(reason: unknown): void
}

class NewNames extends Passing {
  onRequestStart(controller: Controller, context: unknown): unknown {
    this.request.begun((reason) => controller.abort(reason))
    return this.to?.onRequestStart?.(controller, context)
  }

  onRequestUpgrade(
    controller: unknown,
    status: unknown,
    headers: unknown,
    socket: unknown,
  ): unknown {
    return this.to?.onRequestUpgrade?.(controller, status, headers, socket)
  }

  onResponseStarted(): unknown {
    return this.to?.onResponseStarted?.()
  }

  onResponseStart(controller: unknown, status: unknown, headers: unknown, text: unknown): unknown {
    return this.to?.onResponseStart?.(controller, status, headers, text)
  }

  onResponseData(controller: unknown, chunk: unknown): unknown {
    return this.to?.onResponseData?.(controller, chunk)
  }

  onResponseEnd(controller: unknown, trailers: unknown): unknown {
    return this.to?.onResponseEnd?.(controller, trailers)
  }

  onResponseError(controller: unknown, error: unknown): unknown {
    return this.to?.onResponseError?.(controller, error)
  }

  fail(reason: unknown): void {
    this.to?.onResponseError?.(undefined, reason)
    this.to = undefined
  }
}
