/**
 * A Node stream around the downstream's stream. The original is not changed: the wrapper reads from it only on
 * demand. Other members of the original (`statusCode` and `headers` of an `IncomingMessage`, methods of its class)
 * are accessible through the wrapper.
 */
import { Readable } from 'node:stream'
import type { BodyWatch } from './body-watch.js'

export function watchNodeStream<S extends Readable>(source: S, watch: BodyWatch): S {
  const wrapper = createWrapper(source, watch)
  watch.begin({ breakOff: (error) => wrapper.destroy(error as Error) })
  forwardProperties(wrapper, source)
  return wrapper as S
}

/** Gives the wrapper an accessor for each property of the original that it does not have itself. */
function forwardProperties(wrapper: Readable, source: Readable): void {
  for (let from: object = source; from !== Readable.prototype && from !== Object.prototype; ) {
    for (const key of Reflect.ownKeys(from)) {
      if (key in wrapper) continue
      Object.defineProperty(wrapper, key, {
        configurable: true,
        get() {
          const value: unknown = Reflect.get(source, key)
          return typeof value === 'function' ? value.bind(source) : value
        },
      })
    }
    from = Object.getPrototypeOf(from)
  }
}

function createWrapper(source: Readable, watch: BodyWatch): Readable {
  const wrapper = new Readable({
    objectMode: source.readableObjectMode,
    // No read-ahead: the wrapper reads from its source only when it is read itself.
    highWaterMark: 0,
    read() {
      watch.reading()
      source.resume()
    },
    destroy(error, callback) {
      if (error === null || isReaderLeaving(source, error)) watch.left()
      else watch.truncated(error)
      source.destroy(error ?? undefined)
      callback(error)
    },
  })
  const { readableEncoding } = source
  if (readableEncoding !== null) wrapper.setEncoding(readableEncoding)

  source.pause()
  source.on('data', (chunk) => {
    source.pause()
    watch.chunk(chunk)
    wrapper.push(chunk)
  })
  source.once('end', () => {
    watch.complete()
    wrapper.push(null)
  })
  source.once('error', (error) => wrapper.destroy(error))
  // A `close` without `end` or `error` means that the owner destroyed the source.
  source.once('close', () => {
    if (!source.readableEnded) wrapper.destroy()
  })
  wrapper.on('pause', () => watch.resting())
  // Without a listener, an error on a stream that has no reader would end the process.
  wrapper.on('error', () => {})
  return wrapper
}

/** Whether `pipeline` or `for await` ended the stream because its reader stopped. */
function isReaderLeaving(source: Readable, { name, code }: NodeJS.ErrnoException): boolean {
  // For an `IncomingMessage`, both abort the request.
  const { req } = source as { req?: { aborted?: unknown } }
  return name === 'AbortError' || code === 'ERR_STREAM_PREMATURE_CLOSE' || req?.aborted === true
}
