/**
 * Aborting a fetch without giving it a signal, which costs it an eighth of its time. Node's fetch, as
 * undici's, sends by a dispatcher; with one of ours in between we hold what aborts the request.
 *
 * A fetch is trusted to do so once it has been seen to: the first time it gets a signal, too.
 */
type Handler = Record<string, (...args: unknown[]) => unknown>
type Abort = (reason: unknown) => void

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

/**
 * One request, redirects included, on its way through the dispatcher behind. The handler goes there as
 * it is, but for the method by which it is told that it is on a connection: to pass on every call of
 * every method costs more than all else here.
 */
export class Unsignalled implements Dispatcher {
  readonly #behind: Dispatcher
  readonly #fetch: object
  #handler: Handler | undefined
  #abort: Abort | undefined
  #aborted: { reason: unknown } | undefined

  constructor(behind: Dispatcher, fetch: object) {
    this.#behind = behind
    this.#fetch = fetch
  }

  get isMockActive(): boolean {
    return this.#behind.isMockActive === true
  }

  dispatch(options: unknown, handler: Handler): boolean {
    known.add(this.#fetch)
    this.#abort = undefined
    this.#handler = handler
    if (this.#aborted !== undefined) {
      this.#fail(handler, this.#aborted.reason)
      return true
    }
    if (hasNewNames(handler)) this.#overhearStart(handler)
    else this.#overhearConnect(handler)
    return this.#behind.dispatch(options, handler)
  }

  /** By the names handlers had up to undici 6, and which those of fetch have kept. */
  #overhearConnect(handler: Handler): void {
    const { onConnect } = handler
    handler.onConnect = (abort, context) =>
      this.#begun(abort as Abort) ? onConnect?.call(handler, abort, context) : undefined
  }

  #overhearStart(handler: Handler): void {
    const { onRequestStart } = handler
    handler.onRequestStart = (controller, context) => {
      const abort = (reason: unknown) => (controller as { abort: Abort }).abort(reason)
      return this.#begun(abort) ? onRequestStart?.call(handler, controller, context) : undefined
    }
  }

  /** It is on a connection; from now on this ends it. Answers whether anybody still wants it. */
  #begun(abort: Abort): boolean {
    this.#abort = abort
    if (this.#aborted === undefined) return true
    abort(this.#aborted.reason)
    return false
  }

  abort(reason: unknown): void {
    if (this.#aborted !== undefined) return
    this.#aborted = { reason }
    if (this.#abort !== undefined) return this.#abort(reason)
    // Waiting for a connection: nobody waits for it any more, and it will not be sent.
    if (this.#handler !== undefined) this.#fail(this.#handler, reason)
  }

  /** It is told that it is over, and nothing after that. */
  #fail(handler: Handler, reason: unknown): void {
    if (hasNewNames(handler)) {
      handler.onResponseError?.(undefined, reason)
      handler.onResponseError = nothing
    } else {
      handler.onError?.(reason)
      handler.onError = nothing
    }
  }
}

function hasNewNames(handler: Handler): boolean {
  return 'onRequestStart' in handler
}

const nothing = () => {}
