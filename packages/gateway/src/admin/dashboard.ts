/** The dashboard on the admin port: at /dashboard/, where / leads. */

import type { Dashboard } from '@spillway/dashboard'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

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
