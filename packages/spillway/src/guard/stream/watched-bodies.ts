/** Detects values that are streamed bodies and wraps them. The values themselves are not changed. */
import type { Readable } from 'node:stream'
import { isResponse } from '../../core/outcome.js'
import type { BodyWatch } from './body-watch.js'
import { isRelayed } from './relayed.js'
import { watchIterable } from './watched-iterable.js'
import { watchNodeStream } from './watched-node-stream.js'
import { watchResponse } from './watched-response.js'
import { watchStream } from './watched-stream.js'

/** Whether a value is a stream that continues after the function has returned. */
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

/** A wrapper around the value that watches how it is read. */
export function watched<T>(value: T, watch: BodyWatch): T {
  if (isResponse(value)) return watchResponse(value, watch) as T
  if (isWebStream(value)) return watchStream(value, watch) as T
  if (isNodeStream(value)) return watchNodeStream(value, watch) as T
  return watchIterable(value as AsyncIterable<unknown>, watch) as T
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

/** A page of a list, as SDKs return it, is a complete answer: iterating it requests further pages. */
function isPage(value: object): boolean {
  return typeof (value as { getNextPage?: unknown }).getNextPage === 'function'
}
