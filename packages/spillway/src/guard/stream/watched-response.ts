/** A response around the downstream's response, with a watched body. The original is not changed. */
import { carryGivenUp } from '../../local/retry/retry-call.js'
import type { BodyWatch } from './body-watch.js'
import { isByteStream, WatchedStream } from './watched-stream.js'

/** Fields that the constructor of `Response` does not accept. */
const FETCH_FIELDS = ['url', 'redirected', 'type'] as const

/** Throws if no such response can exist (a 204 with a body); the original body is not locked then. */
export function watchResponse(response: Response, watch: BodyWatch): Response {
  const body = response.body as ReadableStream<Uint8Array>
  const watched = new WatchedStream(isFetched(response) || isByteStream(body), watch)
  const wrapper = withBody(response, watched.stream as ReadableStream<Uint8Array>)
  watched.readFrom(body)
  carryGivenUp(response, wrapper)
  return wrapper
}

/** Of the class, because a wrapper has a property of this name. */
const typeOf = Object.getOwnPropertyDescriptor(Response.prototype, 'type')?.get

/**
 * Whether Node's own fetch created the response: then its body is a byte stream. A constructed response has the
 * type `default` and may have any stream. Trying out a reader takes longer, because Node creates an error for it.
 */
function isFetched(response: Response): boolean {
  try {
    return typeOf?.call(response) === 'basic'
  } catch {
    // The response of another fetch.
    return false
  }
}

/** A response with another body and otherwise equal properties. */
export function withBody(response: Response, body: ReadableStream<Uint8Array>): Response {
  const { status, statusText, headers } = response
  const wrapper = new Response(body, { status, statusText, headers })
  for (const field of FETCH_FIELDS) {
    Object.defineProperty(wrapper, field, { value: response[field] })
  }
  return wrapper
}
