/** How a configuration is written down. What comes out is `config.ts`. */
import { accessFields, RENAMED_ACCESS } from 'spillway/internal'
import {
  arrayOf,
  bool,
  type Check,
  described,
  duration,
  integer,
  object,
  oneOf,
  optional,
  schemaOf,
  text,
  together,
} from 'spillway/options'
import type { GatewayConfig } from '../config.js'
import type { ConfigProblem } from '../config-error.js'
import { size } from './byte-size.js'
import { readCallers } from './caller-shape.js'
import { readHealth } from './health-shape.js'
import { linkQueues, readQueues } from './job-queue-shape.js'
import { readRedis } from './redis-shape.js'
import { linkRoutes, usualRoutes } from './routes/route-links.js'
import { readRoutes } from './routes/route-shape.js'
import { type Sources, textOrReference } from './secret-reference.js'
import { readServerLimits, SERVER_LIMITS } from './server-limits-shape.js'
import { readToken } from './token-shape.js'
import { readVendors } from './vendor-shape.js'
import { checkWorkers, readWorkers } from './workers-shape.js'

const PORT = 8_080
const ADMIN = {
  host: '127.0.0.1',
  port: 8_081,
  token: undefined,
  readAccess: 'operators' as const,
  hosts: [] as readonly string[],
  auditMs: 30 * 86_400_000,
}
const KEEP_BYTES = 1_024 ** 2
const MAX_BYTES = 32 * 1_024 ** 2
const MAX_TOTAL_BYTES = 512 * 1_024 ** 2

const MAX_SOCKET_PATH = 100

const port = integer({ min: 0, max: 65_535 })

const readAdmin = (sources: Sources) =>
  object(
    {
      host: optional(text(), ADMIN.host),
      port: optional(port, ADMIN.port),
      token: optional(readToken(sources)),
      readAccess: accessFields.readAccess,
      hosts: optional(arrayOf(text()), ADMIN.hosts),
      auditMs: optional(duration({ min: 60_000, max: 365 * 86_400_000 }), ADMIN.auditMs),
    },
    RENAMED_ACCESS,
  )

const readBody = together(
  object({
    keepBytes: optional(size({ min: 0 })),
    maxBytes: optional(size({ min: 1 }), MAX_BYTES),
    maxTotalBytes: optional(size({ min: 1 })),
  }),
  ({ keepBytes = 0, maxBytes, maxTotalBytes = maxBytes }, path, problems) => {
    if (keepBytes > maxBytes) {
      const message = `must not be more than maxBytes, ${maxBytes}: a larger body is refused`
      problems.push({ path: `${path}.keepBytes`, message })
    }
    if (maxTotalBytes < maxBytes) {
      const message = `must not be less than maxBytes, ${maxBytes}: the largest body would always be refused`
      problems.push({ path: `${path}.maxTotalBytes`, message })
    }
  },
)

const readDrain = object({
  graceMs: optional(duration({ min: 0 }), 30_000),
  delayMs: optional(duration({ min: 0 }), 0),
})

const readTracing = object({
  fromCallers: optional(bool(), true),
  toVendors: optional(bool(), true),
})

const readTelemetry = object({ genAi: optional(bool(), false) })

const ORIGIN = /^(?:\*|https?:\/\/[^/?#\s]+)$/

const origin: Check<string> = described(
  (value, path, problems: ConfigProblem[]) => {
    if (typeof value === 'string' && ORIGIN.test(value)) return value
    problems.push({ path, message: 'must be * or an origin, such as https://app.example' })
    return ''
  },
  { type: 'string', pattern: ORIGIN.source },
)

const readCors = object({
  origins: arrayOf(origin),
  maxAgeMs: optional(duration({ min: 0 }), 600_000),
})

const readReload = object({ watch: optional(bool(), true) })

const readLog = object({
  level: optional(oneOf('debug', 'info', 'warn', 'error', 'silent'), 'info'),
})

/** Reads what stands in a file, from its root. */
export function gatewayShape(sources: Sources): Check<GatewayConfig | undefined> {
  const readFields = object(
    {
      port: optional(port, PORT),
      host: optional(text(), '0.0.0.0'),
      listen: optional(unixSocket),
      admin: optional(readAdmin(sources), ADMIN),
      redis: readRedis(sources),
      pod: optional(textOrReference(sources, /./, 'text')),
      expectedPods: optional(integer({ min: 1 }), 1),
      workers: optional(readWorkers, 1),
      vendors: readVendors(sources),
      routes: optional(readRoutes),
      jobQueues: optional(readQueues),
      callers: optional(readCallers(sources)),
      body: optional(readBody, {
        keepBytes: undefined,
        maxBytes: MAX_BYTES,
        maxTotalBytes: undefined,
      }),
      cors: optional(readCors),
      server: optional(readServerLimits(sources), SERVER_LIMITS),
      health: optional(readHealth, { overload: undefined }),
      drain: optional(readDrain, { graceMs: 30_000, delayMs: 0 }),
      tracing: optional(readTracing),
      telemetry: optional(readTelemetry, { genAi: false }),
      reload: optional(readReload, { watch: true }),
      log: optional(readLog, { level: 'info' as const }),
    },
    { queues: 'jobQueues' },
  )
  const check: Check<GatewayConfig | undefined> = (value, path, problems: ConfigProblem[]) => {
    const fields = readFields(value, path, problems)
    if (fields === undefined) return undefined
    const { vendors, routes, jobQueues, body, ...rest } = fields
    checkPorts(rest, value as object, path, problems)
    checkListen(value as object, path, problems)
    checkWorkers(value as object, rest, path, problems)
    const isRouted = Object.hasOwn(value as object, 'routes')
    const linked = isRouted
      ? linkRoutes(routes, `${path}.routes`, vendors, problems)
      : usualRoutes(vendors, `${path}.vendors`, problems)
    const linkedQueues = linkQueues(jobQueues, `${path}.jobQueues`, vendors, problems)
    if (problems.length > 0) return undefined
    return {
      ...rest,
      vendors: Array.from(vendors.values(), ({ config }) => config),
      routes: linked,
      jobQueues: linkedQueues,
      body: {
        keepBytes: body.keepBytes ?? Math.min(KEEP_BYTES, body.maxBytes),
        maxBytes: body.maxBytes,
        maxTotalBytes: body.maxTotalBytes ?? Math.max(MAX_TOTAL_BYTES, body.maxBytes),
      },
    }
  }
  return described(check, () => schemaOf(readFields))
}

const UNIX = /^unix:(\/.*)$/

/** The path of the socket. Longer ones are cut off by the operating system. */
const unixSocket: Check<string> = described(
  (value, path, problems: ConfigProblem[]) => {
    const [, socket = ''] = (typeof value === 'string' && UNIX.exec(value)) || []
    if (socket === '' || Buffer.byteLength(socket) > MAX_SOCKET_PATH) {
      const example = 'such as unix:/run/spillway.sock'
      const message = `must be unix: and an absolute path of at most ${MAX_SOCKET_PATH} bytes, ${example}`
      problems.push({ path, message })
    }
    return socket
  },
  { type: 'string', pattern: UNIX.source },
)

function checkListen(written: object, path: string, problems: ConfigProblem[]): void {
  if (!Object.hasOwn(written, 'listen')) return
  for (const name of ['port', 'host'].filter((each) => Object.hasOwn(written, each))) {
    const message = `must not be set together with listen, which replaces it`
    problems.push({ path: `${path}.${name}`, message })
  }
}

const ANYWHERE = new Set(['0.0.0.0', '::'])

/** Two servers cannot listen at the same place. Reported at the port that is written down. */
function checkPorts(
  { host, port, admin }: Pick<GatewayConfig, 'host' | 'port' | 'admin'>,
  written: object,
  path: string,
  problems: ConfigProblem[],
): void {
  if (!port || port !== admin?.port) return
  if (host !== admin.host && !ANYWHERE.has(host) && !ANYWHERE.has(admin.host)) return
  const isAdminWritten = Object.hasOwn((written as { admin?: object }).admin ?? {}, 'port')
  problems.push(
    isAdminWritten
      ? { path: `${path}.admin.port`, message: `must not be the gateway's own port, ${port}` }
      : { path: `${path}.port`, message: `must not be admin.port, which is ${admin.port}` },
  )
}
