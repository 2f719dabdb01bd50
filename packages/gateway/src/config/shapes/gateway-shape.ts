/** Format of a configuration file. The result has the type `GatewayConfig` of `config.ts`. */
import { accessFields, RENAMED_ACCESS } from 'spillway/internal'
import {
  about,
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
import { defaultRoutes, linkRoutes } from './routes/route-links.js'
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
      host: about('Address that the admin port listens on.', optional(text(), ADMIN.host)),
      port: about(
        'Port for health, metrics and operators; 0 is any free one.',
        optional(port, ADMIN.port),
      ),
      token: about(
        'Token of operators, at least 16 characters. Default: none; every client on this machine is an operator.',
        optional(readToken(sources)),
      ),
      readAccess: about(
        'Access to dashboard, `/status`, `/snapshot` and `/config`: `operators`, `local` (also clients on this machine) or `public` (all clients).',
        accessFields.readAccess,
      ),
      hosts: about(
        'Host names that requests without the token may use, besides `localhost` and addresses. Other names get a 403.',
        optional(arrayOf(text()), ADMIN.hosts),
      ),
      auditMs: about(
        'How long the audit log keeps actions of operators.',
        optional(duration({ min: 60_000, max: 365 * 86_400_000 }), ADMIN.auditMs),
      ),
    },
    RENAMED_ACCESS,
  )

const readBody = together(
  object({
    keepBytes: about(
      'A body up to this size is held, so that it can be sent again. A larger one is streamed once. Default: 1 MB, or `maxBytes` if that is less.',
      optional(size({ min: 0 })),
    ),
    maxBytes: about(
      'Largest body, compressed or decompressed. A larger one is refused with 413.',
      optional(size({ min: 1 }), MAX_BYTES),
    ),
    maxTotalBytes: about(
      'Memory for all bodies that one process holds. A request beyond it is refused with 503. Default: 512 MB, or `maxBytes` if that is more.',
      optional(size({ min: 1 })),
    ),
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
  graceMs: about(
    'Time that running requests have after the listener is closed.',
    optional(duration({ min: 0 }), 30_000),
  ),
  delayMs: about(
    'Time between failing readiness and closing the listener. Requests are still accepted.',
    optional(duration({ min: 0 }), 0),
  ),
})

const readTracing = object({
  fromCallers: about(
    "Uses a request's trace context as the parent of its spans.",
    optional(bool(), true),
  ),
  toVendors: about('Sends the trace context to vendors.', optional(bool(), true)),
})

const readTelemetry = object({
  genAi: about(
    'Adds metrics and span attributes under the GenAI conventions of OpenTelemetry.',
    optional(bool(), false),
  ),
})

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
  origins: about(
    'Origins of web pages that may use the data port, such as `https://app.example`. `*` is any.',
    arrayOf(origin),
  ),
  maxAgeMs: about(
    'How long browsers remember the answer to a preflight.',
    optional(duration({ min: 0 }), 600_000),
  ),
})

const readReload = object({
  watch: about("Reloads when the file or a secret's file changes.", optional(bool(), true)),
})

const readLog = object({
  level: about(
    'Lowest level that is logged.',
    optional(oneOf('debug', 'info', 'warn', 'error', 'silent'), 'info'),
  ),
})

/** Reads a parsed file. */
export function gatewayShape(sources: Sources): Check<GatewayConfig | undefined> {
  const readFields = object(
    {
      port: about(
        'The data port, for requests of callers; 0 is any free one.',
        optional(port, PORT),
      ),
      host: about('Address that the data port listens on.', optional(text(), '0.0.0.0')),
      listen: about(
        'Unix socket to listen on in place of `host` and `port`, such as `unix:/run/spillway.sock`. Default: none.',
        optional(unixSocket),
      ),
      admin: about(
        'The admin port: health, metrics, dashboard, operator actions. Default: those of each field.',
        optional(readAdmin(sources), ADMIN),
      ),
      redis: about(
        'Store that all gateways share: the URL of one server, or an object. Default: `env:REDIS_URL` if it is set, otherwise memory.',
        readRedis(sources),
      ),
      pod: about(
        'Name of this gateway in metrics and on the dashboard: text or a reference. Default: `pod`. A random part is added.',
        optional(textOrReference(sources, /./, 'text')),
      ),
      expectedPods: about(
        'Number of gateways. While Redis is unreachable, limits are divided by it or by the last known number, whichever is larger.',
        optional(integer({ min: 1 }), 1),
      ),
      workers: about(
        'Processes that serve the data port; `auto` is one for each core. More than one needs `redis`.',
        optional(readWorkers, 1),
      ),
      vendors: about('The vendors, by name; at least one.', readVendors(sources)),
      routes: about(
        'Which requests go to which vendors. The first match is used. Default: the default paths of each vendor.',
        optional(readRoutes),
      ),
      jobQueues: about(
        'Job queues for requests that may wait, by name. Default: none.',
        optional(readQueues),
      ),
      callers: about(
        'Clients that may use the gateway. Default: every client, as `anonymous`.',
        optional(readCallers(sources)),
      ),
      body: about(
        'Limits on the size of request bodies. Default: those of each field.',
        optional(readBody, {
          keepBytes: undefined,
          maxBytes: MAX_BYTES,
          maxTotalBytes: undefined,
        }),
      ),
      cors: about(
        'Web pages of other origins that may use the data port. Default: none.',
        optional(readCors),
      ),
      server: about(
        'TLS, and limits of the data port for clients. Default: those of each field.',
        optional(readServerLimits(sources), SERVER_LIMITS),
      ),
      health: about(
        'When the gateway reports that it is not ready. Default: those of each field.',
        optional(readHealth, { overload: undefined }),
      ),
      drain: about(
        'How long a shutdown waits for load balancers and running requests. Default: those of each field.',
        optional(readDrain, { graceMs: 30_000, delayMs: 0 }),
      ),
      tracing: about('Spans for OpenTelemetry. Default: off.', optional(readTracing)),
      telemetry: about(
        'Additional metrics and span attributes under the conventions of OpenTelemetry. Default: those of each field.',
        optional(readTelemetry, { genAi: false }),
      ),
      reload: about(
        'When the configuration is read again. Default: those of each field.',
        optional(readReload, { watch: true }),
      ),
      log: about(
        'Which lines the gateway logs. Default: those of each field.',
        optional(readLog, { level: 'info' as const }),
      ),
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
      : defaultRoutes(vendors, `${path}.vendors`, problems)
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

/** Two servers cannot listen on one address. Reported at the port that the file sets. */
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
