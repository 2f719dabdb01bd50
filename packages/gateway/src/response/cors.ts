/** Cross-origin requests of pages in browsers, if `cors` is configured (Fetch standard, section 3.2). */
import type { IncomingHttpHeaders } from 'node:http'
import type { CorsConfig } from '../config/config.js'
import type { GatewayAnswer } from '../request/async-requests.js'
import { RequestError } from './errors.js'

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE'
/** Headers that a preflight requests. They are repeated in the answer. */
const HEADER_NAMES = /^[\w-]+(?:\s*,\s*[\w-]+)*$/
const ANY = '*'

/** Headers of every answer to a page of an allowed origin; lower-case names and values alternate. */
export function corsHeaders({ origins }: CorsConfig, { origin }: IncomingHttpHeaders): string[] {
  if (origin === undefined || !isAllowed(origins, origin)) return []
  return [
    ...['access-control-allow-origin', origin],
    ...['access-control-expose-headers', '*'],
    ...['vary', 'origin'],
  ]
}

/** A preflight: the browser checks whether a page may send a request. It carries no key. */
export function isPreflight(method: string | undefined, headers: IncomingHttpHeaders): boolean {
  const { origin, 'access-control-request-method': wanted } = headers
  return method === 'OPTIONS' && origin !== undefined && wanted !== undefined
}

export function answerPreflight(
  { origins, maxAgeMs }: CorsConfig,
  headers: IncomingHttpHeaders,
): GatewayAnswer {
  const { origin = '', 'access-control-request-headers': wanted = '' } = headers
  if (!isAllowed(origins, origin)) throw notAllowed()
  return {
    status: 204,
    headers: {
      'access-control-allow-methods': METHODS,
      ...(HEADER_NAMES.test(wanted) && { 'access-control-allow-headers': wanted }),
      'access-control-max-age': String(Math.floor(maxAgeMs / 1_000)),
    },
    body: '',
  }
}

function isAllowed(origins: readonly string[], origin: string): boolean {
  return origins.includes(ANY) || origins.includes(origin)
}

function notAllowed(): RequestError {
  const message = 'cors.origins does not contain the origin of this page; add it'
  return new RequestError({ status: 403, code: 'ORIGIN_NOT_ALLOWED', message })
}
