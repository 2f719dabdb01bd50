/** Bodies in their three forms, each passed on as it is, with a watch on it. */
import type { Readable } from 'node:stream'
import { isResponse } from '../../core/outcome.js'
import { swallow } from '../../core/thenable.js'
import type { BodyWatch, WatchedBody } from './body-watch.js'
import { isRelayed } from './relayed.js'
import { watchNodeStream } from './watched-node-stream.js'
import { watchResponse } from './watched-response.js'
import { watchStream } from './watched-stream.js'

/** Whether a value goes on after the function has returned it; one that cannot be asked does not. */
export function isStreamed(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  try {
    return isBody(value)
  } catch {
    return false
  }
}

function isBody(value: object): boolean {
  if (value instanceof Response) return isOpen(value)
  if (isRelayed(value)) return true
  if (isResponse(value)) return isWebStream(value.body) && isOpen(value)
  if (isWebStream(value)) return !value.locked
  if (isNodeStream(value)) return !value.destroyed && !value.readableEnded
  return isIterable(value) && !isPage(value)
}

/** A body that is known to be empty is not read. */
function isOpen({ body, headers }: Response): boolean {
  return body !== null && !body.locked && headers.get('content-length') !== '0'
}

/** The same value, watched. */
export function watched<T>(value: T, watch: BodyWatch): T {
  if (isResponse(value)) return watchResponse(value, watch) as T
  if (isWebStream(value)) return watchStream(value, watch) as T
  if (isNodeStream(value)) return watchNodeStream(value, watch) as T
  return watchIterable(value as AsyncIterable<unknown>, watch) as T
}

/** What an SDK's stream has beyond what can be iterated. Its methods call `iterator`. */
interface SdkStream<C> {
  controller?: AbortController
  iterator?: () => AsyncIterator<C>
}

/** The object itself, here too: an SDK's stream has methods, and its class has private members. */
function watchIterable<C>(source: AsyncIterable<C>, watch: BodyWatch): AsyncIterable<C> {
  const { controller: abort, iterator } = sdkStream(source as SdkStream<C>)
  const open = iterator ?? source[Symbol.asyncIterator]
  const passed = new WatchedIterator(() => open.call(source), watch, abort)
  if (!Object.isExtensible(source)) return passed
  const own = (name: PropertyKey, value: unknown) =>
    Object.defineProperty(source, name, { value, configurable: true, writable: true })
  own(Symbol.asyncIterator, () => passed)
  if (iterator !== undefined) own('iterator', () => passed)
  if (isIterator(source)) {
    // A generator is its own iterator.
    const { next, return: leave } = source
    passed.readFrom({
      next: () => next.call(source),
      ...(leave !== undefined && { return: () => leave.call(source) }),
    })
    own('next', () => passed.next())
    own('return', (value: unknown) => passed.return(value))
    own('throw', (error: unknown) => passed.throw(error))
  }
  return source
}

function sdkStream<C>(source: SdkStream<C>): SdkStream<C> {
  const { controller, iterator } = source
  if (!(controller instanceof AbortController)) return {}
  return typeof iterator === 'function' ? { controller, iterator } : { controller }
}

class WatchedIterator<C> implements AsyncIterableIterator<C>, WatchedBody {
  readonly #open: () => AsyncIterator<C>
  readonly #watch: BodyWatch
  /** Of an SDK's stream: the only way to abandon it before it is read. */
  readonly #abort: AbortController | undefined
  readonly #waiting = new Set<(error: unknown) => void>()
  #iterator: AsyncIterator<C> | undefined
  #over = false
  /** The error of the next read. */
  #broken: { error: unknown } | undefined

  constructor(open: () => AsyncIterator<C>, watch: BodyWatch, abort: AbortController | undefined) {
    this.#open = open
    this.#watch = watch
    this.#abort = abort
    watch.begin(this)
  }

  readFrom(iterator: AsyncIterator<C>): void {
    this.#iterator = iterator
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<C>> {
    if (this.#broken !== undefined) {
      const { error } = this.#broken
      this.#broken = undefined
      return Promise.reject(error)
    }
    if (this.#over) return Promise.resolve({ done: true, value: undefined })
    this.#watch.reading()
    return new Promise((resolve, reject) => {
      this.#waiting.add(reject)
      const failed = (error: unknown) => {
        if (!this.#waiting.delete(reject)) return
        this.#over = true
        this.#watch.truncated(error)
        reject(error)
      }
      try {
        this.#iterator ??= this.#open()
        this.#iterator.next().then((result) => {
          if (!this.#waiting.delete(reject)) return
          if (result.done === true) this.#ended()
          else this.#watch.chunk(result.value)
          resolve(result)
        }, failed)
      } catch (error) {
        failed(error)
      }
    })
  }

  async return(value?: unknown): Promise<IteratorResult<C>> {
    if (!this.#over) {
      this.#over = true
      this.#watch.left()
      await this.#letGo()
    }
    return { done: true, value: value as never }
  }

  async throw(error?: unknown): Promise<IteratorResult<C>> {
    await this.return()
    throw error
  }

  /** An SDK ends a stream quietly when its reader aborts it. */
  #ended(): void {
    this.#over = true
    if (this.#abort?.signal.aborted === true) this.#watch.left()
    else this.#watch.complete()
  }

  breakOff(error: unknown): void {
    this.#over = true
    if (this.#waiting.size === 0) this.#broken = { error }
    for (const reject of this.#waiting) reject(error)
    this.#waiting.clear()
    swallow(this.#letGo())
  }

  /** A generator that has not begun has nothing to clean up, whatever its stream holds. */
  async #letGo(): Promise<void> {
    const left = this.#iterator?.return?.()
    this.#abort?.abort()
    await left
  }
}

function isWebStream(value: unknown): value is ReadableStream<Uint8Array> {
  return value instanceof ReadableStream
}

function isNodeStream(value: unknown): value is Readable {
  const { pipe, _read, push } = value as Partial<Readable>
  return typeof pipe === 'function' && typeof _read === 'function' && typeof push === 'function'
}

function isIterable(value: object): value is AsyncIterable<unknown> {
  return typeof (value as Partial<AsyncIterable<unknown>>)[Symbol.asyncIterator] === 'function'
}

function isIterator<C>(value: AsyncIterable<C>): value is AsyncIterableIterator<C> {
  return typeof (value as Partial<AsyncIterableIterator<C>>).next === 'function'
}

/** A page of a list, as SDKs return it, is a whole answer: iterating it asks for further ones. */
function isPage(value: object): boolean {
  return typeof (value as { getNextPage?: unknown }).getNextPage === 'function'
}
