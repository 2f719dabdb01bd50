/** The admin port: health, metrics, and how everything stands. For operators, not for callers. */
import { type FastifyInstance, fastify } from 'fastify'
import type { Registry } from 'prom-client'
import { createHealth, type Spillway } from 'spillway'
import { ADMIN_SERVER_OPTIONS, harden } from './hardening.js'
import type { Health } from './health.js'

export interface AdminOptions {
  readonly health: Health
  readonly registry: Registry
  readonly spillway: Spillway
  /** Where it will listen. */
  readonly host: string
}

export function createAdminServer({
  health,
  registry,
  spillway,
  host,
}: AdminOptions): FastifyInstance {
  const server = fastify(ADMIN_SERVER_OPTIONS)
  harden(server, host)
  for (const path of ['/health/live', '/health/ready']) {
    server.get(path, (_, reply) => {
      const { status, body } = health.at(path) ?? { status: 404, body: '{}' }
      return reply.code(status).type('application/json').send(body)
    })
  }
  const deep = createHealth({ spillway })
  server.get('/health/deep', async (_, reply) => {
    const report = await deep.deep()
    return reply.code(report.status === 'unhealthy' ? 503 : 200).send(report)
  })
  server.get('/metrics', async (_, reply) =>
    reply.type(registry.contentType).send(await registry.metrics()),
  )
  server.get('/snapshot', () => spillway.snapshot())
  return server
}
