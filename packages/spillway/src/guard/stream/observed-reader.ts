/** Readers of an observed stream: to all who use one it is Node's, and it reports what it is used for. */
import { inspect } from 'node:util'
import type { ReadResult, StreamObserver, StreamReader } from './stream-observer.js'

interface ReadableStreamReadOptions {
  min?: number
}

/** As either of the two kinds can be called. */
type AnyReader = Omit<ReadableStreamBYOBReader, 'read'> & {
  read(view: ArrayBufferView, options?: ReadableStreamReadOptions): Promise<ReadResult>
}

/** In front of Node's, and not in its place: to change the prototype of each costs twice as much. */
export function observedReader(reader: StreamReader, observer: StreamObserver): StreamReader {
  const lendsBuffers = reader instanceof ReadableStreamBYOBReader
  observer.locked(reader, lendsBuffers)
  const Like = lendsBuffers ? LikeByob : LikeDefault
  return new Like(reader as AnyReader, observer) as unknown as StreamReader
}

const LikeDefault = readerLike(ReadableStreamDefaultReader.prototype)
const LikeByob = readerLike(ReadableStreamBYOBReader.prototype)

function readerLike(native: StreamReader) {
  class Observed {
    readonly #reader: AnyReader
    readonly #observer: StreamObserver

    constructor(reader: AnyReader, observer: StreamObserver) {
      this.#reader = reader
      this.#observer = observer
    }

    /** Of the two kinds only one takes anything; the other does not look at it. */
    read(view: ArrayBufferView, options?: ReadableStreamReadOptions) {
      const observer = this.#observer
      observer.asked()
      return this.#reader.read(view, options).then(observer.came, observer.failed)
    }

    cancel(reason?: unknown): Promise<void> {
      return this.#observer.left(this.#reader as StreamReader, () => this.#reader.cancel(reason))
    }

    releaseLock(): void {
      this.#reader.releaseLock()
      this.#observer.released(this.#reader as StreamReader)
    }

    get closed(): Promise<undefined> {
      return this.#observer.closed(this.#reader.closed as Promise<undefined>)
    }

    [inspect.custom](): AnyReader {
      return this.#reader
    }
  }
  // One of them, as far as anybody asks: `instanceof`, and `constructor`, which is Node's.
  Object.setPrototypeOf(Observed.prototype, native)
  Reflect.deleteProperty(Observed.prototype, 'constructor')
  return Observed
}
