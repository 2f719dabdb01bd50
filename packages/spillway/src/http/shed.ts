/**
 * A load shedder in front of an HTTP server. It decides before any work is done for a request, and
 * answers refused ones as cheaply as Node can. For `node:http` and frameworks built on it.
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

/** Built once, because the cost of a refusal matters under overload. */
const HEADERS = [
  'content-type',
  'application/json; charset=utf-8',
  'content-length',
  String(Buffer.byteLength(BODY)),
  'retry-after',
  RETRY_AFTER_SECONDS,
]

/**
 * Sheds a request of `node:http`. Returns whether it was refused and answered. Otherwise it counts as in flight
 * until its response is closed. Its endpoint is its path, by which health checks are recognised; `known` adds
 * user, tier and priority.
 *
 * @example
 * if (shedRequest(shedder, request, response)) return
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
