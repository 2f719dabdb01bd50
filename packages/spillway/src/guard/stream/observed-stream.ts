/**
 * A Web stream handed on as it came, with a watch on whoever reads it. Another stream around it would
 * cost as much as the one that is there. So it keeps its identity and its source, and is given methods
 * that report before they do what they always did.
 */
import type { ReadableWritablePair, StreamPipeOptions } from 'node:stream/web'
import type { BodyWatch } from './body-watch.js'
import { observedReader } from './observed-reader.js'
import { passOn } from './passed-stream.js'
import { type IterationOptions, StreamIterator } from './stream-iterator.js'
import { observerOf, StreamObserver } from './stream-observer.js'

type Stream = ReadableStream<unknown>

/**
 * Whether it could be done: a stream that is not simply Node's own, or is observed already, may mean
 * more by its methods. `response` is the one it is the body of.
 */
export function observe(stream: Stream, watch: BodyWatch, response?: Response): boolean {
  if (Object.getPrototypeOf(stream) !== ReadableStream.prototype) return false
  if (!Reflect.setPrototypeOf(stream, STREAM)) return false
  watch.begin(new StreamObserver(stream, watch, response))
  return true
}

const { getReader, cancel } = ReadableStream.prototype

/**
 * A prototype, not a subclass: nobody constructs one, and `constructor` stays that of Node. All that
 * Node reads without asking for a reader first (pipes, branches, iteration) is led to one.
 */
const METHODS = {
  getReader(this: Stream, options?: unknown) {
    const reader = (getReader as (options: unknown) => ReadableStreamDefaultReader).call(
      this,
      options,
    )
    const observer = observerOf(this)
    return observer === undefined ? reader : observedReader(reader, observer)
  },

  cancel(this: Stream, reason?: unknown) {
    const observer = observerOf(this)
    if (observer === undefined) return cancel.call(this, reason)
    return observer.left(undefined, () => cancel.call(this, reason))
  },

  values(this: Stream, options?: IterationOptions) {
    return new StreamIterator(this.getReader(), options)
  },

  [Symbol.asyncIterator](this: Stream) {
    return new StreamIterator(this.getReader())
  },

  tee(this: Stream) {
    return passOn(this.getReader()).tee()
  },

  pipeThrough(this: Stream, pair: ReadableWritablePair, options?: StreamPipeOptions) {
    return passOn(this.getReader()).pipeThrough(pair, options)
  },

  async pipeTo(this: Stream, to: WritableStream, options?: StreamPipeOptions) {
    const reader = this.getReader()
    try {
      await passOn(reader).pipeTo(to, options)
    } finally {
      reader.releaseLock()
    }
  },
}

const STREAM: object = Object.create(
  ReadableStream.prototype,
  Object.getOwnPropertyDescriptors(METHODS),
)
