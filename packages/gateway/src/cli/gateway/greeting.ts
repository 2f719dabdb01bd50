/** The text that is printed when the gateway has started: its addresses, and requests to try. */
import type { GatewayConfig, VendorConfig } from '../../config/config.js'
import { CLOSE_ACCESS, openAccess } from '../../config/open-access.js'
import { redisAddress } from '../../config/redis-address.js'

interface Started {
  readonly config: GatewayConfig
  /** Undefined: the built-in configuration. */
  readonly file: string | undefined
  readonly port: number
  readonly adminPort: number
  /** Whether Redis has answered. Undefined: not known, because only the workers connect to it. */
  readonly isReached?: boolean | undefined
}

export function greeting(started: Started): string {
  const { config, file, port, adminPort } = started
  const { host, admin, vendors, listen } = config
  const scheme = schemeOf(config)
  const at = `${scheme}://${reachable(host)}:${port}`
  const adminAt = `http://${reachable(admin.host)}:${adminPort}`
  const real = listen === undefined ? `${scheme}://${inUrl(host)}:${port}` : `unix:${listen}`
  const open = openAccess({ ...config, port })
  const lines = [
    '',
    `Spillway gateway on ${real}, admin on http://${inUrl(admin.host)}:${adminPort}`,
    ...(open === undefined ? [] : [`  warning: ${open}: ${CLOSE_ACCESS}`]),
    `  configuration: ${file ?? 'built in, with a mock vendor; write a spillway.yaml for your own'}`,
    `  vendors: ${vendors.map(({ name, protocol }) => `${name} (${protocol})`).join(', ')}`,
    ...(config.workers > 1 ? [`  workers: ${config.workers} processes`] : []),
    `  limits and breakers: ${sharing(started)}`,
    '',
    `Dashboard: ${adminAt}/dashboard/${file === undefined ? '  (switches there start a load and break the vendor)' : ''}`,
    '',
    ...(listen === undefined ? [] : tryTheSocket(listen, config)),
    ...(file === undefined ? tryThis(at, adminAt, vendors[0]) : lookAt(adminAt)),
    '',
    'Ctrl-C stops it.',
    '',
  ]
  return `${lines.join('\n')}\n`
}

function sharing({ config: { redis }, isReached }: Started): string {
  if (redis === undefined) return 'in this process alone; set REDIS_URL to share them'
  const at = `Redis at ${redisAddress(redis)}`
  return isReached === false ? `${at} (not reached yet)` : `shared through ${at}`
}

/** An address for requests from this machine. */
function reachable(host: string): string {
  return host === '0.0.0.0' || host === '::' ? 'localhost' : inUrl(host)
}

function inUrl(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

function tryThis(at: string, adminAt: string, vendor: VendorConfig | undefined): string[] {
  const failures = vendor?.guard.breaker?.consecutiveFailures
  const post = `curl -s ${at}/v1/chat/completions -H 'content-type: application/json'`
  const messages = `"messages": [{"role": "user", "content": "Hello"}]`
  const chat = `"model": "gpt-4o", ${messages}`
  return [
    'Try:',
    '  # an answer, with headers that say what was decided',
    `  ${post} -i -d '{${chat}}'`,
    '  # the same, streamed',
    `  ${post} -N -d '{${chat}, "stream": true}'`,
    // The breaker counts attempts, of which a request may have several.
    `  # a vendor that fails. After ${failures} attempts in a row (spillway-attempts says how many) the circuit opens`,
    `  ${post} -i -H 'x-mock: {"status": 503}' -d '{${chat}}'`,
    '  # one that may wait: a job queue does it, and location says where its answer will be',
    `  ${post} -i -H 'prefer: respond-async' -d '{"model": "gpt-4.1-nano", ${messages}}'`,
    '',
    ...lookAt(adminAt),
  ]
}

/** Scheme of the data port. The admin port has no TLS. */
function schemeOf({ server }: GatewayConfig): string {
  return server.tls === undefined ? 'http' : 'https'
}

/** A configuration with a Unix socket is in a file, so its models and keys are not known here. */
function tryTheSocket(path: string, config: GatewayConfig): string[] {
  const url = `${schemeOf(config)}://localhost/health/ready`
  return ['Try:', `  curl -s --unix-socket '${path}' ${url}`, '']
}

function lookAt(adminAt: string): string[] {
  return ['Look at:', `  ${adminAt}/health/deep   ${adminAt}/metrics   ${adminAt}/status`]
}
