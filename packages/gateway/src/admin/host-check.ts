/**
 * Checks the `Host` of requests that need no token on an admin port that other machines can reach. A web page in a
 * browser inside the network can point its own name at this port (DNS rebinding) and read the answers. Such a request
 * has the page's name as its host; an address, or a name in the configuration, is safe.
 */
import { isIP } from 'node:net'
import type { AccessDenial, OperatorAccess } from 'spillway/http'
import { type AdminAccess, accessOf } from './access.js'
import { DASHBOARD_PATH } from './dashboard.js'
import type { AdminRequest } from './http.js'

/** Probes of load balancers may use any name, and the answer is no secret. */
const PROBES: ReadonlySet<string | undefined> = new Set(['/health/live', '/health/ready'])

export type HostCheck = (request: AdminRequest) => AccessDenial | undefined

export function createHostCheck(admin: AdminAccess, access: OperatorAccess): HostCheck {
  const { exposed } = accessOf(admin)
  // Without `exposed`, the library checks the name of every request.
  if (exposed !== true) return () => undefined
  const hosts = new Set(admin.hosts.map((host) => host.toLowerCase()))
  return ({ raw, route }) => {
    if (PROBES.has(route)) return undefined
    // The page contains no secrets, and the data it loads needs the token.
    if (admin.readAccess !== 'public' && isPage(route)) return undefined
    const { host = '' } = raw.headers
    const name = nameOf(host)
    if (isAddress(name) || hosts.has(name) || hosts.has(host.toLowerCase())) return undefined
    // An operator's token proves more than a name does.
    if (access.act(raw) === undefined) return undefined
    const problem = `unknown host ${JSON.stringify(name.slice(0, 100))}: list it in admin.hosts, or send the admin token`
    return { status: 403, code: 'WRONG_HOST', problem }
  }
}

function isPage(path: string | undefined): boolean {
  return path === '/' || path?.startsWith(DASHBOARD_PATH) === true
}

function nameOf(host: string): string {
  return host.replace(/:\d+$/, '').toLowerCase()
}

function isAddress(name: string): boolean {
  return name === 'localhost' || isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0
}
