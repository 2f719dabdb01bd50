/** Bodies in their three forms, each passed on as it is, with a watch on it. */
import type { Readable } from 'node:stream'
import { isResponse } from '../../core/outcome.js'
import { swallow } from '../../core/thenable.js'
import type { BodyWatch } from './body-watch.js'

/** Whether a value goes on after the function has returned it. */
export function isStreamed(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (isResponse(value)) return isWebStream(value.body) && !value.body.locked
  return isWebStream(value) ? !value.locked : isNodeStream(value) || isIterable(value)
}

/** The same value, watched. */
export function watched<T>(value: T, watch: BodyWatch): T {
  if (isResponse(value)) return watchResponse(value, watch) as T
  if (isWebStream(value)) return watchWeb(value, watch) as T
  if (isNodeStream(value)) return watchNode(value, watch) as T
  return watchIterable(value as AsyncIterable<unknown>, watch) as T
}

/** A response keeps everything but its body. */
function watchResponse(response: Response, watch: BodyWatch): Response {
  const { status, statusText, headers } = response
  const body = watchWeb(response.body as ReadableStream<Uint8Array>, watch)
  const passed = new Response(body, { status, statusText, headers })
  for (const field of ['url', 'redirected', 'type'] as const) {
    Object.defineProperty(passed, field, { value: response[field] })
  }
  return passed
}

function watchWeb<C>(source: ReadableStream<C>, watch: BodyWatch): ReadableStream<C> {
  const reader = source.getReader()
  let out: ReadableStreamDefaultController<C>
  const passed = new ReadableStream<C>(
    {
      start(controller) {
        out = controller
      },
      // Asked only when somebody reads: nothing is read ahead.
      async pull(controller) {
        watch.reading()
        try {
          const { done, value } = await reader.read()
          if (!done) {
            watch.chunk(value)
            return controller.enqueue(value)
          }
          watch.complete()
          controller.close()
        } catch (error) {
          watch.truncated(error)
          controller.error(error)
        }
      },
      cancel(reason) {
        watch.left()
        return reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
  watch.begin((error) => {
    out.error(error)
    swallow(reader.cancel(error))
  })
  return passed
}

/** The stream itself: whoever gets it may want what only its own class has. */
function watchNode(stream: Readable, watch: BodyWatch): Readable {
  const push = stream.push
  stream.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (chunk !== null) watch.chunk(chunk)
    return push.call(stream, chunk, encoding)
  }
  const read = stream._read
  stream._read = (size) => {
    watch.reading()
    read.call(stream, size)
  }
  stream.once('end', () => watch.complete())
  stream.once('error', (error) => watch.truncated(error))
  stream.once('close', () => watch.left())
  watch.begin((error) => stream.destroy(error as Error))
  return stream
}

function watchIterable<C>(source: AsyncIterable<C>, watch: BodyWatch): AsyncIterable<C> {
  let breakOff: (error: unknown) => void = () => {}
  const broken = new Promise<never>((_, reject) => {
    breakOff = reject
  })
  broken.catch(() => {})
  async function* pass(): AsyncGenerator<C> {
    const iterator = source[Symbol.asyncIterator]()
    let over = false
    try {
      while (true) {
        watch.reading()
        const { done, value } = await Promise.race([iterator.next(), broken])
        if (done === true) break
        watch.chunk(value)
        yield value
      }
      over = true
      watch.complete()
    } catch (error) {
      over = true
      watch.truncated(error)
      throw error
    } finally {
      if (!over) watch.left()
      swallow(iterator.return?.())
    }
  }
  watch.begin((error) => breakOff(error))
  const passed = pass()
  // An object may be more than iterable: an SDK's stream has a controller and methods.
  return new Proxy(source, {
    get(target, property) {
      if (property === Symbol.asyncIterator) return () => passed
      const member = Reflect.get(target, property, target)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
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
