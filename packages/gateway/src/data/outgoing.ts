/** A request as a vendor gets it: its path, headers and body, with what is ours in place of the client's. */
import type { Dispatcher } from 'undici'
import { requestTarget } from '../request/canonical-path.js'
import type { WireRequest } from '../wire/ask.js'
import type { ClientRequest } from '../wire/client.js'
import type { Aim } from './aim.js'
import { RequestError } from './complaint.js'
import type { Question } from './question.js'

export function outgoing(
  request: ClientRequest,
  question: Question,
  aim: Aim,
  tellUsage: boolean,
): WireRequest {
  // The vendor gets the path by which the route and the limits were chosen.
  const url = question.path + requestTarget(request.url ?? '/').query
  const headers = aim.forwarded.of(request.rawHeaders, request.headers.connection)
  // Node's parser lets characters pass that ours does not.
  const trustedUpTo = request.isPlain === true ? headers.length : 0
  addOwnHeaders(headers, request, question, aim)
  return {
    method: (request.method ?? 'GET') as Dispatcher.HttpMethod,
    path: pathFor(url, question.route.stripPrefix),
    headers,
    trustedUpTo,
    body: bodyFor(question, aim, tellUsage),
  }
}

function addOwnHeaders(
  headers: string[],
  request: ClientRequest,
  { body, idempotencyKey }: Question,
  aim: Aim,
): void {
  for (const each of aim.ownHeaders) headers.push(each)
  if (idempotencyKey !== undefined) headers.push('idempotency-key', idempotencyKey)
  const length = request.headers['content-length']
  if (body.kind === 'passing' && length !== undefined) headers.push('content-length', length)
}

function bodyFor({ body, json }: Question, { vendor, target }: Aim, tellUsage: boolean) {
  if (body.kind === 'passing') {
    if (target.model !== undefined) throw cannotReplace()
    return body.pieces
  }
  if (json === undefined || (target.model === undefined && !tellUsage)) {
    return body.bytes.length === 0 ? undefined : body.bytes
  }
  return vendor.protocol.rewrite(json, { model: target.model, tellUsage })
}

function cannotReplace(): RequestError {
  const message = 'the body is too large for a route that puts another model in'
  return new RequestError({ status: 413, code: 'BODY_TOO_LARGE', message })
}

function pathFor(url: string, prefix: string | undefined): string {
  if (prefix === undefined || !url.startsWith(prefix)) return url
  const rest = url.slice(prefix.length)
  if (rest.startsWith('/')) return rest
  // Only whole parts of a path are taken off.
  return rest === '' || rest.startsWith('?') ? `/${rest}` : url
}
