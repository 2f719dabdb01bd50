/**
 * The admin port is for operators, and a browser on an operator's machine runs pages of strangers. They must not be
 * able to reach it: neither by a form that posts to localhost, nor by a host name that they point at 127.0.0.1.
 */
import type { ServerOptions } from 'node:http'
import type { SpillwayEvent } from 'spillway'
import type { AccessDenial } from 'spillway/http'
import { attempt } from './audit.js'
import type { AdminRequest, AdminResponse } from './http.js'

/** As strict as the data port, with shorter timeouts: operators send little. */
export const ADMIN_SERVER_OPTIONS: ServerOptions = {
  maxHeaderSize: 16_384,
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  keepAliveTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
  insecureHTTPParser: false,
  requireHostHeader: true,
}

export const MAX_CONNECTIONS = 200

export const SECURITY_HEADERS = {
  'cache-control': 'no-store',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const

/** The answer to a request without access, which is audited. */
export function denied(
  { status, code, problem }: AccessDenial,
  request: AdminRequest,
  audit: (event: SpillwayEvent) => void,
): AdminResponse {
  const isAboutToken = code === 'UNKNOWN_TOKEN' || code === 'NO_TOKEN'
  const message = isAboutToken ? `${problem} (admin.token of the configuration)` : problem
  audit(attempt(request, 'refused', `${code}: ${message}`))
  return {
    status,
    ...(status === 401 && { headers: { 'www-authenticate': 'Bearer' } }),
    body: { error: { code, message } },
  }
}

/** Repeats nothing of the request, which may contain a token. */
export const NOT_FOUND: AdminResponse = {
  status: 404,
  body: { error: { code: 'NOT_FOUND', message: 'no such path on the admin port' } },
}

export const FAILED: AdminResponse = {
  status: 500,
  body: { error: { code: 'INTERNAL', message: 'the gateway failed; its log has the error' } },
}
