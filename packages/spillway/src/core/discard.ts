/**
 * Releases what an unread result holds. A `Response` whose body is neither read nor cancelled keeps
 * its connection. So a result that arrives after its call was given up has to be released
 * explicitly.
 */
import { swallow } from './thenable.js'

/**
 * Where results keep a body: fetch and undici, axios, and `withResponse()` of the vendors' SDKs.
 */
const BODY_FIELDS = ['body', 'data', 'response'] as const

/** Cancels the body of a result that no caller will read, and returns whether it has one. */
export function discardResult(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  let released = release(value, isWebStream)
  for (const field of BODY_FIELDS) {
    const part = fieldOf(value, field)
    if (release(part, field === 'body' ? isCancellable : isWebStream)) released = true
    if (field === 'response' && release(fieldOf(part, 'body'), isCancellable)) released = true
  }
  return released
}

function release(value: unknown, mayCancel: (value: object) => value is Cancellable): boolean {
  if (typeof value !== 'object' || value === null) return false
  // A getter or method of a foreign object may throw. The caller has its answer already.
  try {
    if (mayCancel(value)) swallow(value.cancel())
    else if (isNodeStream(value)) destroy(value)
    else if (isAsyncIterable(value)) stopIterating(value)
    else return false
  } catch {}
  return true
}

function fieldOf(value: unknown, field: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  try {
    return (value as Record<string, unknown>)[field]
  } catch {
    return undefined
  }
}

interface Cancellable {
  cancel(): unknown
}

/** Enough for a field named `body`: not every fetch has Node's own streams. */
function isCancellable(value: object): value is Cancellable {
  return typeof (value as Partial<Cancellable>).cancel === 'function'
}

function isWebStream(value: object): value is Cancellable {
  return isCancellable(value) && typeof (value as { getReader?: unknown }).getReader === 'function'
}

interface NodeStream {
  destroy(): void
  on(event: 'error', listener: () => void): void
}

function isNodeStream(value: object): value is NodeStream {
  const { destroy, pipe, on } = value as Record<string, unknown>
  return typeof destroy === 'function' && typeof pipe === 'function' && typeof on === 'function'
}

/** A body of undici emits an error if it is destroyed unread. Without a listener that ends the process. */
function destroy(stream: NodeStream): void {
  stream.on('error', () => {})
  stream.destroy()
}

function isAsyncIterable(value: object): value is AsyncIterable<unknown> {
  return typeof (value as Partial<AsyncIterable<unknown>>)[Symbol.asyncIterator] === 'function'
}

/** A stream of a vendor's SDK holds its request by an abort controller. */
function stopIterating(value: AsyncIterable<unknown>): void {
  swallow(value[Symbol.asyncIterator]().return?.())
  const { controller } = value as { controller?: unknown }
  if (controller instanceof AbortController) controller.abort()
}
