/**
 * The admin port is for operators, and a browser on an operator's machine runs pages of strangers. They
 * must not be able to reach it: neither by a form that posts to localhost, nor by a name of theirs that
 * suddenly means 127.0.0.1.
 */
import type { Server } from 'node:http'
import { isIP } from 'node:net'
import type { FastifyHttpOptions, FastifyInstance } from 'fastify'

/** As strict as the data port, and less patient: who operates sends little. */
export const ADMIN_SERVER_OPTIONS = {
  logger: false,
  forceCloseConnections: true,
  bodyLimit: 1_024 ** 2,
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

/** `host`: where it listens. */
export function harden(server: FastifyInstance, host: string): void {
  server.server.maxConnections = MOST_CONNECTIONS
  const isPrivate = isLoopback(host)
  server.addHook('onRequest', async (request, reply) => {
    reply.headers(HEADERS)
    const { host: asked = '', origin, 'sec-fetch-site': site } = request.headers
    // Names are for those who listen to others, and who ask for a token.
    if (isPrivate && !isLiteral(asked)) return refuse(reply, 421, 'WRONG_HOST')
    if (isForeign(origin, site, asked)) return refuse(reply, 403, 'CROSS_SITE')
    return undefined
  })
  server.setNotFoundHandler((_, reply) => refuse(reply, 404, 'NOT_FOUND'))
  server.setErrorHandler((error: { statusCode?: number; code?: string }, _, reply) => {
    const { statusCode: status = 500, code = 'INTERNAL' } = error
    return refuse(reply, status, status >= 500 ? 'INTERNAL' : code)
  })
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
  WRONG_HOST: 'this port is for localhost, or an address: no other name leads here',
  CROSS_SITE: 'pages of other sites have no business here',
  NOT_FOUND: 'nothing is here',
  INTERNAL: 'the gateway failed',
}

function isForeign(origin: string | undefined, site: unknown, asked: string): boolean {
  if (site === 'cross-site' || site === 'same-site') return true
  return origin !== undefined && origin !== `http://${asked}` && origin !== `https://${asked}`
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\./.test(host)
}

/** `localhost`, or an address: nobody else can make that mean something. */
function isLiteral(asked: string): boolean {
  const name = asked.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
  return name === '' || name === 'localhost' || isIP(name) !== 0
}
