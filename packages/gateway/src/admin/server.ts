/** The admin port: health, metrics, how everything stands, and what operators may do. Not for callers. */

import type { Dashboard } from '@spillway/dashboard'
import { type FastifyInstance, fastify } from 'fastify'
import type { Registry } from 'prom-client'
import { createHealth, type Operator, type Spillway, type SpillwayEvent } from 'spillway'
import type { OperatorAccess } from 'spillway/http'
import { mountDashboard } from './dashboard.js'
import { ADMIN_SERVER_OPTIONS, harden } from './hardening.js'
import type { Health } from './health.js'
import type { HostCheck } from './host-check.js'
import { type ConfigHooks, operations } from './operations.js'

export type { ConfigAnswer } from './operations.js'

export interface AdminOptions {
  readonly health: Health
  readonly registry: Pick<Registry, 'contentType' | 'metrics'>
  readonly spillway: Spillway
  /** The state of the guards in this process, or in every worker. */
  readonly snapshot: () => object | Promise<object>
  readonly operator: () => Operator
  readonly access: OperatorAccess
  readonly checkHost: HostCheck
  /** Hears of every attempt that was refused; of actions everybody hears. */
  readonly audit: (event: SpillwayEvent) => void
  readonly config: ConfigHooks
  readonly dashboard: Dashboard
}

export function createAdminServer(options: AdminOptions): FastifyInstance {
  const { health, registry, spillway, operator, access, checkHost, audit, config } = options
  const server = fastify(ADMIN_SERVER_OPTIONS)
  harden(server, access, checkHost, audit)
  // A form of another site could send that without asking first.
  server.removeContentTypeParser('text/plain')
  for (const path of ['/health/live', '/health/ready']) {
    server.get(path, (_, reply) => {
      const { status, body } = health.at(path) ?? { status: 404, body: '{}' }
      return reply.code(status).type('application/json').send(body)
    })
  }
  const deep = createHealth({ spillway })
  server.get('/health/deep', async ({ raw }, reply) => {
    const report = await deep.deep()
    const { refused, ...standing } = config.status()
    // Mistakes quote the file they are in.
    const mayKnow = access.act(raw) === undefined
    const said = refused && (mayKnow ? refused : { at: refused.at })
    return reply
      .code(report.status === 'unhealthy' ? 503 : 200)
      .send({ ...report, config: { ...standing, refused: said } })
  })
  server.get('/metrics', async (_, reply) =>
    reply.type(registry.contentType).send(await registry.metrics()),
  )
  mountDashboard(server, options.dashboard)
  server.register(
    operations({ access, spillway, snapshot: options.snapshot, operator, audit, config }),
  )
  return server
}
