/**
 * A load shedder in front of an HTTP server: asks before anything is done for a request, and answers
 * those that are refused as cheaply as Node can. For `node:http` and whatever is built on it.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { LoadShedder, ShedRequest } from '../local/load-shedder/load-shedder.js'
import { endpointOf } from './endpoint.js'

const BODY = JSON.stringify({
  error: {
    type: 'spillway',
    code: 'SHED',
    message: 'too much to do; come back later',
    stage: 'shed',
  },
})
const RETRY_AFTER_SECONDS = '1'

/** Written once: overload is when the cost of saying no matters. */
const HEADERS = [
  'content-type',
  'application/json; charset=utf-8',
  'content-length',
  String(Buffer.byteLength(BODY)),
  'retry-after',
  RETRY_AFTER_SECONDS,
]

/**
 * Whether the request was refused, and has its answer. Otherwise it counts as inside until its response
 * is closed. What it is about is its path, by which health checks are known, and whatever you know more.
 */
export function shedRequest(
  shedder: LoadShedder,
  request: IncomingMessage,
  response: ServerResponse,
  known?: ShedRequest,
): boolean {
  const endpoint = known?.endpoint ?? endpointOf(request.url ?? '/')
  const visit = shedder.enter(known === undefined ? { endpoint } : { ...known, endpoint })
  if (visit === undefined) {
    response.writeHead(503, HEADERS)
    response.end(BODY)
    return true
  }
  response.once('close', visit.end)
  return false
}
