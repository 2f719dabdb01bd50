/** A backpressure queue as one end of a stream, of Node's or of the Web's. */
import { Readable, Writable } from 'node:stream'
import { ReadableStream, WritableStream } from 'node:stream/web'
import type { BackpressureQueue } from './backpressure-queue.js'

/**
 * Written items go into the queue. The end of the stream closes it; an error closes it with that
 * error.
 */
export function queueWritable<T>(queue: BackpressureQueue<T>): Writable {
  return new Writable({
    objectMode: true,
    // The queue buffers, so the stream need not.
    highWaterMark: 1,
    write(item: T, _encoding, done) {
      const wait = queue.put(item)
      if (wait === undefined) done()
      else wait.then(() => done(), done)
    },
    final(done) {
      queue.close()
      done()
    },
    destroy(error, done) {
      // Does nothing after a clean end, because the queue is closed already.
      queue.close(error ?? undefined)
      done(error)
    },
  })
}

/** Reads items from the queue when the stream is read, and not earlier. */
export function queueReadable<T>(queue: BackpressureQueue<T>): Readable {
  const leave = new AbortController()
  return new Readable({
    objectMode: true,
    highWaterMark: 0,
    read() {
      queue.take({ signal: leave.signal }).then(
        ({ done, value }) => this.push(done === true ? null : value),
        (error) => this.destroy(error),
      )
    },
    destroy(error, done) {
      leave.abort(error ?? undefined)
      done(error)
    },
  })
}

/** A Web stream that writes into a backpressure queue. */
export function queueWritableStream<T>(queue: BackpressureQueue<T>): WritableStream<T> {
  return new WritableStream<T>({
    write: (item) => queue.put(item),
    close: () => queue.close(),
    abort: (reason) => queue.close(reason ?? new Error('the stream was aborted')),
  })
}

/** A Web stream that reads from a backpressure queue. */
export function queueReadableStream<T>(queue: BackpressureQueue<T>): ReadableStream<T> {
  const leave = new AbortController()
  return new ReadableStream<T>(
    {
      async pull(controller) {
        const { done, value } = await queue.take({ signal: leave.signal })
        if (done === true) controller.close()
        else controller.enqueue(value)
      },
      cancel: (reason) => leave.abort(reason),
    },
    // No item is taken in advance, because it would be lost if the stream were cancelled.
    { highWaterMark: 0 },
  )
}
