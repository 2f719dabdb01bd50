/**
 * A Web stream handed on as it came, with a watch on whoever reads it. Another stream around it would
 * cost as much as the one that is there. So it keeps its identity and its source, and is given methods
 * that report before they do what they always did.
 */
import type { ReadableWritablePair, StreamPipeOptions } from 'node:stream/web'
import type { BodyWatch } from './body-watch.js'
import { passOn } from './passed-stream.js'
import { type IterationOptions, StreamIterator } from './stream-iterator.js'
import { StreamObserver, type StreamReader } from './stream-observer.js'

const OBSERVER = Symbol('spillway.observer')

interface Observed {
  [OBSERVER]: StreamObserver
}

type Stream = ReadableStream<unknown>
type ObservedStream = Stream & Observed
type ObservedReader = StreamReader & Observed

/** One that is not simply Node's own, or is observed already, may mean more by its methods. */
export function canObserve(stream: Stream): boolean {
  return Object.getPrototypeOf(stream) === ReadableStream.prototype && Object.isExtensible(stream)
}

/** `onBroken` is told, before its source is let go, that it is broken off. */
export function observe(
  stream: Stream,
  watch: BodyWatch,
  onBroken?: (error: unknown) => void,
): void {
  const observer = new StreamObserver(stream, watch)
  Object.setPrototypeOf(stream, STREAM)
  ;(stream as ObservedStream)[OBSERVER] = observer
  watch.begin(
    (error) => {
      onBroken?.(error)
      observer.breakOff(error)
    },
    () => observer.followUnseen(),
  )
}

const { getReader, cancel } = ReadableStream.prototype

/**
 * Prototypes, not subclasses: nobody constructs one, and `constructor` stays that of Node. All that
 * Node reads without asking for a reader first (pipes, branches, iteration) is led to one.
 */
const STREAM: Stream = own(ReadableStream.prototype, {
  getReader(this: ObservedStream, options?: unknown) {
    const reader = (getReader as (options: unknown) => StreamReader).call(this, options)
    const observer = this[OBSERVER]
    Object.setPrototypeOf(reader, reader instanceof ReadableStreamBYOBReader ? BYOB : DEFAULT)
    ;(reader as ObservedReader)[OBSERVER] = observer
    observer.locked(reader)
    return reader
  },

  cancel(this: ObservedStream, reason?: unknown) {
    return this[OBSERVER].left(undefined, () => cancel.call(this, reason))
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
})

const DEFAULT = readerLike(ReadableStreamDefaultReader.prototype)
const BYOB = readerLike(ReadableStreamBYOBReader.prototype)

function readerLike<R extends StreamReader>(reader: R): R {
  const { read, cancel, releaseLock } = reader as ReadableStreamBYOBReader
  const closed = Object.getOwnPropertyDescriptor(reader, 'closed')?.get as () => Promise<undefined>
  return own(reader, {
    read(this: ReadableStreamBYOBReader & Observed, ...into: [ArrayBufferView]) {
      const observer = this[OBSERVER]
      observer.asked()
      return read.apply(this, into).then(observer.came, observer.failed)
    },

    cancel(this: ObservedReader, reason?: unknown) {
      return this[OBSERVER].left(this, () => cancel.call(this as ReadableStreamBYOBReader, reason))
    },

    releaseLock(this: ObservedReader) {
      releaseLock.call(this as ReadableStreamBYOBReader)
      this[OBSERVER].released(this)
    },

    get closed(): Promise<undefined> {
      const self = this as unknown as ObservedReader
      return self[OBSERVER].closed(closed.call(self))
    },
  })
}

/** Its prototype's, but for these. */
function own<T extends object>(prototype: T, methods: object): T {
  return Object.create(prototype, Object.getOwnPropertyDescriptors(methods)) as T
}
