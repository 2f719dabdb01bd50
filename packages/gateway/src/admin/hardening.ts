/**
 * The admin port is for operators, and a browser on an operator's machine runs pages of strangers. They
 * must not be able to reach it: neither by a form that posts to localhost, nor by a name of theirs that
 * suddenly means 127.0.0.1.
 */
import type { Server } from 'node:http'
import type { FastifyHttpOptions, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { SpillwayEvent } from 'spillway'
import type { AccessDenial, OperatorAccess } from 'spillway/http'
import { attempt } from './audit.js'
import type { HostCheck } from './host-check.js'

/** As strict as the data port, and less patient: who operates sends little. */
export const ADMIN_SERVER_OPTIONS = {
  logger: false,
  forceCloseConnections: true,
  bodyLimit: 65_536,
  connectionTimeout: 0,
  keepAliveTimeout: 5_000,
  requestTimeout: 10_000,
  onProtoPoisoning: 'error',
  onConstructorPoisoning: 'error',
  return503OnClosing: true,
  http: {
    maxHeaderSize: 16_384,
    headersTimeout: 5_000,
    connectionsCheckingInterval: 1_000,
    insecureHTTPParser: false,
    requireHostHeader: true,
  },
} as const satisfies FastifyHttpOptions<Server>

const MOST_CONNECTIONS = 200

const HEADERS = {
  'cache-control': 'no-store',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const

/** `audit` hears of whoever is turned away. */
export function harden(
  server: FastifyInstance,
  access: OperatorAccess,
  checkHost: HostCheck,
  audit: (event: SpillwayEvent) => void,
): void {
  server.server.maxConnections = MOST_CONNECTIONS
  server.addHook('onRequest', async (request, reply) => {
    reply.headers(HEADERS)
    const denial = access.stranger(request.raw) ?? checkHost(request)
    return denial && turnAway(denial, request, reply, audit)
  })
  server.setNotFoundHandler((_, reply) => refuse(reply, 404, 'NOT_FOUND'))
  server.setErrorHandler((error: { statusCode?: number; code?: string }, _, reply) => {
    const { statusCode: status = 500, code = 'INTERNAL' } = error
    return refuse(reply, status, status >= 500 ? 'INTERNAL' : code)
  })
}

/** Who may not is told why, and a line in the log tells of it. */
export function turnAway(
  { status, code, problem }: AccessDenial,
  request: FastifyRequest,
  reply: FastifyReply,
  audit: (event: SpillwayEvent) => void,
): unknown {
  const isAboutToken = code === 'UNKNOWN_TOKEN' || code === 'NO_TOKEN'
  const message = isAboutToken ? `${problem} (admin.token of the configuration)` : problem
  audit(attempt(request, 'refused', `${code}: ${message}`))
  if (status === 401) reply.header('www-authenticate', 'Bearer')
  return reply.code(status).send({ error: { code, message } })
}

/** Says no more than the reason: what was asked for may have a token in it. */
function refuse(
  reply: { code(status: number): { send(body: object): unknown } },
  status: number,
  code: string,
): unknown {
  return reply.code(status).send({ error: { code, message: MESSAGES[code] ?? code } })
}

const MESSAGES: Readonly<Record<string, string>> = {
  NOT_FOUND: 'nothing is here',
  INTERNAL: 'the gateway failed',
}
