/** The dashboard on the admin port: at /dashboard/, where / leads. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Dashboard } from 'spillway/http'
import { isLoopback } from './access.js'

export const DASHBOARD_PATH = '/dashboard'

export function mountDashboard(server: FastifyInstance, dashboard: Dashboard): void {
  // Before anything is read of it: the dashboard goes by the plain request and its answer.
  const onRequest = async (request: FastifyRequest, reply: FastifyReply) => {
    reply.hijack()
    dashboard(request.raw, reply.raw)
    return reply
  }
  const never = async (_: FastifyRequest, reply: FastifyReply) => reply
  for (const path of [DASHBOARD_PATH, `${DASHBOARD_PATH}/*`]) {
    server.all(path, { onRequest }, never)
  }
  server.get('/', (_, reply) => reply.redirect(`${DASHBOARD_PATH}/`))
}

/** As of the rest of the admin port: what is open to other machines wants a token. */
export function lookRule({ host, token }: { host: string; token: string | undefined }) {
  const closed = token === undefined && !isLoopback(host)
  return ({ socket }: { socket: { remoteAddress?: string | undefined } }): true | string =>
    !closed || isLoopback((socket.remoteAddress ?? '').replace(/^::ffff:/, ''))
      ? true
      : 'the admin port is open to other machines: set admin.token in the configuration'
}
