/** The admin port: health, metrics, the state of the gateway, and the actions of operators. Not for callers. */

import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Dashboard } from '@spillway/dashboard'
import type { Registry } from 'prom-client'
import { createHealth, type Operator, type Spillway, type SpillwayEvent } from 'spillway'
import type { OperatorAccess } from 'spillway/http'
import { DASHBOARD_PATH, isDashboardPath } from './dashboard.js'
import { HandedOverConnections } from './handed-over-connections.js'
import {
  ADMIN_SERVER_OPTIONS,
  denied,
  FAILED,
  MAX_CONNECTIONS,
  NOT_FOUND,
  SECURITY_HEADERS,
} from './hardening.js'
import type { Health } from './health.js'
import type { HostCheck } from './host-check.js'
import { type AdminRequest, type AdminResponse, pathOf, Routes, send } from './http.js'
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
  /** Receives every attempt that was refused; accepted actions are events of the library. */
  readonly audit: (event: SpillwayEvent) => void
  readonly config: ConfigHooks
  readonly dashboard: Dashboard
}

export interface AdminServer {
  /** Resolves with the port, which differs from `port` if that is 0. */
  listen(at: { host: string; port: number }): Promise<number>
  /** Serves a connection that the supervisor has accepted, in place of `listen`. False: the server is closed. */
  serve(socket: Socket): boolean
  /** Destroys all connections, because the feed of a dashboard stays open. */
  close(): Promise<void>
}

export function createAdminServer(options: AdminOptions): AdminServer {
  const { access, checkHost, audit, dashboard } = options
  const explain = (requestId: string) => dashboard.explain(requestId)
  const groups = [publicRoutes(options), operations({ ...options, explain })]

  async function respond(raw: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', socket } = raw
    const path = pathOf(raw)
    const onDashboard = isDashboardPath(path)
    const handler = groups.map((routes) => routes.find(method, path)).find(Boolean)
    const route = onDashboard ? DASHBOARD_PATH : handler && path
    const request: AdminRequest = { raw, method, route, ip: socket.remoteAddress ?? '' }
    const denial = access.checkOrigin(raw) ?? checkHost(request)
    const answer = (content: AdminResponse) => send(raw, response, content, SECURITY_HEADERS)
    if (denial !== undefined) answer(denied(denial, request, audit))
    else if (onDashboard) dashboard(raw, response)
    else answer(handler === undefined ? NOT_FOUND : await handler(request))
  }

  const server = createServer(ADMIN_SERVER_OPTIONS, (raw, response) => {
    respond(raw, response).catch(() => send(raw, response, FAILED, SECURITY_HEADERS))
  })
  server.maxConnections = MAX_CONNECTIONS
  const handedOver = new HandedOverConnections(server)
  return {
    async listen({ host, port }) {
      server.listen({ host, port })
      await once(server, 'listening')
      return (server.address() as AddressInfo).port
    },
    serve: (socket) => handedOver.serve(socket),
    close() {
      handedOver.close()
      return new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
    },
  }
}

/** Routes that need no token. */
function publicRoutes({ health, registry, spillway, access, config }: AdminOptions): Routes {
  const routes = new Routes()
  for (const path of ['/health/live', '/health/ready']) {
    routes.get(path, () => health.at(path) ?? NOT_FOUND)
  }
  const deep = createHealth({ spillway })
  routes.get('/health/deep', async ({ raw }) => {
    const report = await deep.deep()
    const { refused, ...standing } = config.status()
    // Mistakes quote the file they are in.
    const mayKnow = access.act(raw) === undefined
    const shown = refused && (mayKnow ? refused : { at: refused.at })
    return {
      status: report.status === 'unhealthy' ? 503 : 200,
      body: { ...report, config: { ...standing, refused: shown } },
    }
  })
  routes.get('/metrics', async () => ({
    type: registry.contentType,
    body: await registry.metrics(),
  }))
  // Browsers follow the redirect; the body is for other clients.
  const dashboard = `${DASHBOARD_PATH}/`
  const links = { dashboard, health: '/health/deep', metrics: '/metrics', status: '/status' }
  routes.get('/', () => ({ status: 302, headers: { location: dashboard }, body: links }))
  return routes
}
