/**
 * A response whose body is watched. It is the one that came: Node's reads its body by the methods the
 * body itself has, so watching those is enough, whichever way it is read.
 */
import { carryConclusion } from '../../local/attempts.js'
import type { BodyWatch } from './body-watch.js'
import { observe } from './observed-stream.js'
import { passOn } from './passed-stream.js'

export function watchResponse(response: Response, watch: BodyWatch): Response {
  const body = response.body as ReadableStream<Uint8Array>
  if (Object.getPrototypeOf(response) === Response.prototype) {
    if (observe(body, watch, response)) return response
  }
  const copy = copyOf(response, body)
  observe(copy.body as ReadableStream, watch, copy)
  return copy
}

/**
 * Of another class, or watched already: a response that has everything from it but its body. Throws if
 * there can be none, as of a 204 with a body, and then that body is not locked.
 */
function copyOf(response: Response, body: ReadableStream<Uint8Array>): Response {
  const { status, statusText, headers } = response
  let reader: ReadableStreamDefaultReader<Uint8Array>
  const passed = passOn<Uint8Array>({
    read: () => reader.read(),
    cancel: (reason) => reader.cancel(reason),
  })
  const copy = new Response(passed, { status, statusText, headers })
  reader = body.getReader()
  for (const field of ['url', 'redirected', 'type'] as const) {
    Object.defineProperty(copy, field, { value: response[field] })
  }
  carryConclusion(response, copy)
  return copy
}
