/** Checks the configuration, Node, the admin port and Redis of a gateway. */
import { builtInConfig } from '../../config/built-in-config.js'
import type { GatewayConfig } from '../../config/config.js'
import { counted } from '../../config/counted.js'
import { loadConfig } from '../../config/load.js'
import { CLOSE_ACCESS, isLoopback, openAccess } from '../../config/open-access.js'
import { findConfigFile } from '../config-file.js'
import { messageOf } from '../operate/fleet-connection.js'
import type { StoreValues } from '../operate/store-source.js'
import { type Finding, fail, ok, warn } from './finding.js'
import { examineRedis } from './redis.js'

export async function examine({
  config: file,
  redis: url,
  prefix,
}: StoreValues): Promise<Finding[]> {
  const { config, finding } = readConfig(file)
  const findings = [finding, ...nodeFindings()]
  if (config === undefined) return findings
  findings.push(...accessFindings(config), ...adminFindings(config))
  const configured = url === undefined ? config.redis : { url }
  if (configured === undefined) {
    const advice = 'fine for one gateway. For more: redis in the configuration, or REDIS_URL'
    findings.push(warn('redis', 'none: each gateway has limits of its own', advice))
    return findings
  }
  findings.push(
    ...(await examineRedis(prefix === undefined ? configured : { ...configured, prefix })),
  )
  return findings
}

function readConfig(file: string | undefined): {
  config: GatewayConfig | undefined
  finding: Finding
} {
  const found = findConfigFile(file)
  try {
    if (found === undefined) {
      const message = 'no spillway.yaml here: the built-in one, with a mock vendor'
      return {
        config: builtInConfig(),
        finding: warn('config', message, 'spillway init writes one'),
      }
    }
    const config = loadConfig({ file: found })
    const { vendors, routes } = config
    const message = `${found}: ${counted(vendors.length, 'vendor')}, ${counted(routes.length, 'route')}`
    return { config, finding: ok('config', message) }
  } catch (error) {
    const finding = fail('config', messageOf(error), 'spillway check FILE shows this error, too')
    return { config: undefined, finding }
  }
}

const OLDEST_NODE = [20, 19] as const

function nodeFindings(): Finding[] {
  const { node } = process.versions
  const [major = 0, minor = 0] = node.split('.').map(Number)
  const good = major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1])
  if (good) return [ok('node', node)]
  return [fail('node', `${node} is too old`, `install Node ${OLDEST_NODE.join('.')} or newer`)]
}

function accessFindings(config: GatewayConfig): Finding[] {
  const open = openAccess(config)
  return open === undefined ? [] : [warn('callers', open, CLOSE_ACCESS)]
}

function adminFindings({ admin }: GatewayConfig): Finding[] {
  const { host, port, token } = admin
  const at = `${host}:${port}`
  if (token !== undefined) return [ok('admin', `${at}, with a token`)]
  if (isLoopback(host)) return [ok('admin', `${at}, for this machine only`)]
  const message = `${at} is reachable from other machines and has no token, so operator actions are refused`
  return [warn('admin', message, 'set admin.token: env:NAME, or admin.host: 127.0.0.1')]
}
