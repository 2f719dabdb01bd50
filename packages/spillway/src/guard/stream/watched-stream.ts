/**
 * A Web stream around the downstream's stream. It reads from its source only on demand, so nothing is buffered and a
 * pending pull means that the reader waits for the downstream. The source is never changed.
 */
import type { UnderlyingByteSource, UnderlyingSource } from 'node:stream/web'
import { swallow } from '../../core/thenable.js'
import type { BodyWatch, WatchedBody } from './body-watch.js'

type Controller = ReadableStreamDefaultController<unknown> | ReadableByteStreamController

/**
 * A stream that knows its wrapper, for `reportErrorsAs`. In a WeakMap both would stay alive until a full garbage
 * collection, because each refers to the other.
 */
class OwnStream extends ReadableStream<unknown> {
  readonly #watched: WatchedStream

  constructor(watched: WatchedStream, source: UnderlyingSource | UnderlyingByteSource) {
    // Its reader decides when the source is read: nothing is read ahead.
    super(source as UnderlyingSource, { highWaterMark: 0 })
    this.#watched = watched
  }

  static watchedOf(stream: ReadableStream): WatchedStream | undefined {
    return #watched in stream ? stream.#watched : undefined
  }
}

/** Changes the error that the reader of `stream` gets when Spillway ends it early. */
export function reportErrorsAs(stream: ReadableStream, convert: (error: unknown) => unknown): void {
  OwnStream.watchedOf(stream)?.reportErrorsAs(convert)
}

/** Returns a stream with the same content as `source`, which it locks. */
export function watchStream<C>(source: ReadableStream<C>, watch: BodyWatch): ReadableStream<C> {
  const watched = new WatchedStream(isByteStream(source), watch)
  watched.readFrom(source)
  return watched.stream as ReadableStream<C>
}

export class WatchedStream implements WatchedBody {
  readonly stream: ReadableStream<unknown>
  readonly #watch: BodyWatch
  readonly #bytes: boolean
  #controller!: Controller
  #reader: ReadableStreamDefaultReader<unknown> | undefined
  #convertError = (error: unknown) => error

  constructor(bytes: boolean, watch: BodyWatch) {
    this.#watch = watch
    this.#bytes = bytes
    const source = {
      start: (controller: Controller) => {
        this.#controller = controller
      },
      pull: () => this.#pull(),
      cancel: (reason: unknown) => this.#cancel(reason),
    }
    this.stream = new OwnStream(this, bytes ? { ...source, type: 'bytes' } : source)
  }

  /** Locks `source`; from here on the watch applies its timeouts. */
  readFrom(source: ReadableStream<unknown>): void {
    const reader = source.getReader()
    this.#reader = reader
    // Notices an error while no read is pending.
    reader.closed.catch((error: unknown) => this.#broken(error))
    this.#watch.begin(this)
  }

  /** Once for each chunk, so this is no async function. */
  #pull(): Promise<void> | undefined {
    this.#watch.reading()
    return this.#reader?.read().then(
      ({ done, value }) => (done ? this.#complete() : this.#pass(value)),
      (error) => this.#broken(error),
    )
  }

  #pass(chunk: unknown): void {
    if (this.#isOver) return
    // The watch comes first: a byte stream takes over the chunk's memory.
    this.#watch.chunk(chunk)
    this.#controller.enqueue(chunk as never)
  }

  #complete(): void {
    if (this.#isOver) return
    this.#watch.complete()
    this.#controller.close()
    // A reader that brought its own buffer gets it back empty.
    if (this.#bytes) (this.#controller as ReadableByteStreamController).byobRequest?.respond(0)
  }

  /** An error of the source also discards what was not read yet, as in any Web stream. */
  #broken(error: unknown): void {
    // Usually an abort by a signal that the guard does not know. An abort with a reason of its own, or by a timeout, cannot be
    // distinguished from an error of the vendor.
    if ((error as Error | undefined)?.name === 'AbortError') this.#watch.left()
    else this.#watch.truncated(error)
    if (!this.#isOver) this.#controller.error(error)
  }

  #cancel(reason: unknown): Promise<void> | undefined {
    this.#watch.left()
    return this.#reader?.cancel(reason)
  }

  /** The stream was cancelled by its reader or ended by `breakOff`. */
  get #isOver(): boolean {
    return this.#controller.desiredSize === null || this.#reader === undefined
  }

  reportErrorsAs(convert: (error: unknown) => unknown): void {
    this.#convertError = convert
  }

  breakOff(error: unknown): void {
    const reader = this.#reader
    this.#reader = undefined
    this.#controller.error(this.#convertError(error))
    if (reader !== undefined) swallow(reader.cancel(error))
  }
}

/** Only byte streams provide BYOB readers. */
export function isByteStream(stream: ReadableStream<unknown>): boolean {
  try {
    stream.getReader({ mode: 'byob' }).releaseLock()
    return true
  } catch {
    return false
  }
}
