/**
 * A wrapper around an async iterable: a generator, or the stream of an SDK. The source is not changed, and has only
 * one iterator. Its other properties and methods are reached through the wrapper.
 */
import { swallow } from '../../core/thenable.js'
import type { BodyWatch, WatchedBody } from './body-watch.js'

/** A stream as the SDKs of OpenAI and Anthropic define it. All its methods read through `iterator`. */
interface SdkStream<C> {
  readonly controller: AbortController
  readonly iterator: () => AsyncIterator<C>
}

/** A stream that its SDK reads itself: `finalMessage()` of Anthropic, `finalChatCompletion()` of OpenAI. */
interface SelfReadingStream {
  readonly ended: boolean
}

type SdkStreamClass<C> = new (
  iterator: SdkStream<C>['iterator'],
  controller: AbortController,
) => AsyncIterable<C> & Partial<SdkStream<C>>

export function watchIterable<C>(source: AsyncIterable<C>, watch: BodyWatch): AsyncIterable<C> {
  const { controller, iterator } = source as Partial<SdkStream<C>>
  const abort = controller instanceof AbortController ? controller : undefined
  if (abort !== undefined && typeof iterator === 'function') {
    const watched = new WatchedIterator(() => iterator.call(source), watch, abort)
    return sameClass(source, abort, watched) ?? forwarding(source, watched)
  }
  const watched = new WatchedIterator(() => source[Symbol.asyncIterator](), watch, abort)
  return forwarding(source, watched)
}

/**
 * A stream of the SDK's class around the watched iterator, created like the SDK's own `tee`. A proxy would not work,
 * because methods of the class use private members. Undefined if the class has another constructor.
 */
function sameClass<C>(
  source: AsyncIterable<C>,
  controller: AbortController,
  watched: WatchedIterator<C>,
): AsyncIterable<C> | undefined {
  const iterator = () => watched
  try {
    const stream = new (source.constructor as SdkStreamClass<C>)(iterator, controller)
    if (stream.iterator !== iterator || stream.controller !== controller) return undefined
    for (const key of Reflect.ownKeys(source)) {
      if (Object.hasOwn(stream, key)) continue
      Object.defineProperty(stream, key, Object.getOwnPropertyDescriptor(source, key) ?? {})
    }
    return stream
  } catch {
    return undefined
  }
}

/** Iterating leads to the watched iterator, everything else to the source. */
function forwarding<C>(source: AsyncIterable<C>, watched: WatchedIterator<C>): AsyncIterable<C> {
  const own: Record<PropertyKey, unknown> = { [Symbol.asyncIterator]: () => watched }
  // A generator is its own iterator.
  if (typeof (source as Partial<AsyncIterator<C>>).next === 'function') {
    own.next = () => watched.next()
    own.return = (value: unknown) => watched.return(value)
    own.throw = (error: unknown) => watched.throw(error)
  }
  // A proxy may not show other values than these.
  const isFixed = (key: PropertyKey) =>
    Object.getOwnPropertyDescriptor(source, key)?.configurable === false
  if (Reflect.ownKeys(own).some(isFixed)) return watched
  return new Proxy(source, {
    get(target, key, proxy) {
      if (Object.hasOwn(own, key)) return own[key]
      const value: unknown = Reflect.get(target, key)
      if (typeof value !== 'function' || key === 'constructor' || isFixed(key)) return value
      return (...args: unknown[]) => {
        watched.isReadElsewhere = true
        const result: unknown = Reflect.apply(value, target, args)
        if (result instanceof Promise) watched.readBy(result, target as object)
        return result === target ? proxy : result
      }
    },
  })
}

class WatchedIterator<C> implements AsyncIterableIterator<C>, WatchedBody {
  readonly #open: () => AsyncIterator<C>
  readonly #watch: BodyWatch
  /** Of an SDK's stream: the only way to abandon it before it is read. */
  readonly #abort: AbortController | undefined
  /** The source is read through one of its own methods. */
  isReadElsewhere = false
  readonly #waiting = new Set<(error: unknown) => void>()
  #iterator: AsyncIterator<C> | undefined
  /** Promises of the source's methods that have not settled. */
  #readers = 0
  #over = false
  /** The error of the next read. */
  #broken: { error: unknown } | undefined

  constructor(open: () => AsyncIterator<C>, watch: BodyWatch, abort: AbortController | undefined) {
    this.#open = open
    this.#watch = watch
    this.#abort = abort
    watch.begin(this)
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

  /**
   * A method of the source has returned this promise. Until it settles, the source is being read; then it has ended
   * if it reports so. If its iterator is read as well, only that counts.
   */
  readBy(promise: Promise<unknown>, source: Partial<SelfReadingStream>): void {
    if (this.#over || this.#iterator !== undefined) return
    this.#readers++
    this.#watch.readElsewhere()
    const settled = (end: () => void) => {
      this.#readers--
      if (this.#iterator !== undefined) return
      if (source.ended === true) end()
      else if (this.#readers === 0) this.#watch.resting()
    }
    swallow(
      promise.then(
        () => settled(() => this.#watch.complete()),
        (error) => settled(() => this.#broke(error)),
      ),
    )
  }

  async return(value?: unknown): Promise<IteratorResult<C>> {
    if (!this.#over) {
      this.#over = true
      this.#watch.left()
      await this.#endSource()
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

  #broke(error: unknown): void {
    if (this.#abort?.signal.aborted === true) this.#watch.left()
    else this.#watch.truncated(error)
  }

  breakOff(error: unknown): void {
    this.#over = true
    if (this.#waiting.size === 0) this.#broken = { error }
    for (const reject of this.#waiting) reject(error)
    this.#waiting.clear()
    swallow(this.#endSource())
  }

  /** A generator that has not started runs no clean-up, even if its stream holds a connection. */
  async #endSource(): Promise<void> {
    const left = this.#iterator?.return?.()
    if (!this.isReadElsewhere) this.#abort?.abort()
    await left
  }
}
