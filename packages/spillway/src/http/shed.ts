/**
 * A load shedder in front of an HTTP server. It decides before any work is done for a request. For `node:http` and
 * frameworks built on it.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { LoadShedder, ShedRequest } from '../local/load-shedder/load-shedder.js'
import { endpointOf } from './endpoint.js'
import { answerRefusal } from './node-server.js'

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
  const visit = shedder.admit(known === undefined ? { endpoint } : { ...known, endpoint })
  if ('end' in visit) {
    response.once('close', visit.end)
    return false
  }
  answerRefusal(response, visit)
  return true
}
