/** What is known about a stream that is read where it is, and what its readers are told. */
import { finished, isErrored } from 'node:stream'
import type { ReadableStreamReadResult } from 'node:stream/web'
import { swallow } from '../../core/thenable.js'
import type { BodyWatch, WatchedBody } from './body-watch.js'
import { tellWhy } from './broken-response.js'

export type ReadResult = ReadableStreamReadResult<unknown>
export type StreamReader = ReadableStreamDefaultReader<unknown> | ReadableStreamBYOBReader

/**
 * By their streams; beside them, because to add a property to one of Node's costs more. Nothing is kept
 * of a body that came to its end: Node holds its streams weakly, which only a full collection heeds.
 */
const observers = new WeakMap<ReadableStream, StreamObserver>()

/** Nothing, once there is nothing more to see. */
export function observerOf(stream: ReadableStream): StreamObserver | undefined {
  return observers.get(stream)
}

export class StreamObserver implements WatchedBody {
  readonly #stream: ReadableStream<unknown>
  readonly #watch: BodyWatch
  readonly #response: Response | undefined
  /** Who has locked it, as far as we know. */
  #reader: StreamReader | undefined
  /** It brings the buffers that are filled. */
  #lent = false
  /** Chunks that were asked for and have not come. */
  #wanted = 0
  /** It is told how the stream ends, whoever reads it. */
  #hearsEnd = false
  #broken: { error: unknown } | undefined
  #words: ((error: unknown) => unknown) | undefined

  constructor(stream: ReadableStream<unknown>, watch: BodyWatch, response: Response | undefined) {
    this.#stream = stream
    this.#watch = watch
    this.#response = response
    observers.set(stream, this)
  }

  locked(reader: StreamReader, lendsBuffers: boolean): void {
    this.#reader = reader
    this.#lent = lendsBuffers
  }

  released(reader: StreamReader): void {
    if (this.#reader === reader) this.#reader = undefined
  }

  /** The next chunk is asked for; what comes of it goes to `came` or `failed`. */
  asked(): void {
    this.#wanted++
    this.#watch.reading()
  }

  // Functions and not methods, so that they are made once and not for every chunk.
  readonly came = (result: ReadResult): ReadResult => {
    this.#wanted--
    this.#tellBroken()
    if (result.done) {
      this.#watch.complete()
      observers.delete(this.#stream)
      return result
    }
    // A buffer that was lent goes back for the next chunk.
    this.#watch.chunk(this.#lent ? (result.value as Uint8Array).slice() : result.value)
    if (this.#wanted > 0) this.#watch.reading()
    return result
  }

  readonly failed = (error: unknown): never => {
    this.#wanted--
    this.#tellBroken()
    // Otherwise its reader has let go of it meanwhile, or asked for something impossible.
    if (isErrored(this.#stream as never)) this.#watch.truncated(error)
    else if (this.#wanted === 0) this.#watch.resting()
    throw error
  }

  /** The end of it, as its readers should see it. */
  closed(closed: Promise<undefined>): Promise<undefined> {
    const told = closed.then(
      () => this.#tellBroken(),
      (error) => {
        this.#tellBroken()
        throw error
      },
    )
    swallow(told)
    return told
  }

  /** Somebody has had enough; by `cancel` the source hears of it. */
  left(by: StreamReader | undefined, cancel: () => Promise<void>): Promise<void> {
    if (this.#broken !== undefined) return Promise.reject(this.#broken.error)
    // Who does not hold it cannot let go of it, and is told so.
    if (this.#reader === by && this.#stream.locked === (by !== undefined)) this.#watch.left()
    return cancel()
  }

  /** What breaks it off is told to its readers like this. */
  tellAs(words: (error: unknown) => unknown): void {
    this.#words = words
  }

  /** The source is let go. To its readers that would look like a good end, so they hear from us. */
  breakOff(error: unknown): void {
    const told = this.#words === undefined ? error : this.#words(error)
    if (this.#response !== undefined) tellWhy(this.#response, told)
    swallow((this.#reader ?? this.#stream).cancel(error))
    this.#broken = { error: told }
  }

  /**
   * Not every reader is seen: somebody may make one by hand, with `new ReadableStreamDefaultReader`,
   * or send the stream to another thread. Of such a stream we hear no more than how it ends.
   */
  isReadUnseen(): boolean {
    if (!this.#stream.locked || this.#reader !== undefined) return false
    if (this.#hearsEnd) return true
    this.#hearsEnd = true
    finished(this.#stream as never, (error) => {
      if (error) this.#watch.truncated(error)
      else this.#watch.complete()
    })
    return true
  }

  #tellBroken(): undefined {
    if (this.#broken !== undefined) throw this.#broken.error
  }
}
