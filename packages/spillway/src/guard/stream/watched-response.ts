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
    if (observe(body, watch, (error) => tellWhy(response, error))) return response
  }
  const copy = copyOf(response, passOn(body.getReader()))
  observe(copy.body as ReadableStream, watch, (error) => tellWhy(copy, error))
  return copy
}

/** Of another class, or watched already: a response that has everything from it but its body. */
function copyOf(response: Response, body: ReadableStream<Uint8Array>): Response {
  const { status, statusText, headers } = response
  const copy = new Response(body, { status, statusText, headers })
  for (const field of ['url', 'redirected', 'type'] as const) {
    Object.defineProperty(copy, field, { value: response[field] })
  }
  carryConclusion(response, copy)
  return copy
}

const WAYS_TO_READ = ['arrayBuffer', 'blob', 'bytes', 'formData', 'json', 'text', 'clone'] as const

/** Who comes to read what was broken off would hear no more than that it is unusable. */
function tellWhy(response: Response, error: unknown): void {
  if (response.body?.locked !== false) return
  for (const way of WAYS_TO_READ) {
    if (!(way in response)) continue
    const value = way === 'clone' ? throwing(error) : () => Promise.reject(error)
    Object.defineProperty(response, way, { value, configurable: true, writable: true })
  }
}

function throwing(error: unknown): () => never {
  return () => {
    throw error
  }
}
