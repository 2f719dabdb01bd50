/**
 * An operator's connection to the fleet: directly to the store named in the gateways'
 * configuration; or, without a shared store, through the admin port of one gateway.
 */
import { existsSync } from 'node:fs'
import { hostname, userInfo } from 'node:os'
import { askPods, type Explanation } from '@spillway/dashboard'
import { createOperator, type GuardOptions } from 'spillway'
import { listMembers, systemClock } from 'spillway/internal'
import type { Store } from 'spillway/shared'
import { type GatewayConfig, keyNames } from '../../config/config.js'
import { loadConfig } from '../../config/load.js'
import { isPlaceholder, missingIn, placeholderSecrets } from '../../config/placeholder-secrets.js'
import { openStore } from '../../shared-store.js'
import { EXIT } from '../command.js'
import { CommandError } from '../command-error.js'
import { UsageError } from '../parse-args.js'
import { adminClient, type OperatorPart } from './admin-client.js'
import { isReady } from './wait-until-ready.js'

export interface FleetConnection {
  readonly operator: OperatorPart
  /** By name; none where only a gateway knows. */
  readonly guards: Readonly<Record<string, GuardOptions>> | undefined
  /** What became of a request, on whichever pod it was. */
  explain(requestId: string): Promise<Explanation>
  close(): Promise<void>
}

export const USUAL_FILE = 'spillway.yaml'
/** No call waits for an operator, so a slow answer is better than none. */
const COMMAND_MS = 5_000

export async function openFleetConnection({
  config: file = USUAL_FILE,
  admin,
}: {
  config?: string | undefined
  admin?: string | undefined
}): Promise<FleetConnection> {
  if (admin !== undefined) {
    const operator = adminClient(readUrl(admin), process.env.SPILLWAY_ADMIN_TOKEN)
    const { explain } = operator
    return { operator, guards: undefined, explain, close: async () => {} }
  }
  if (file === USUAL_FILE && !existsSync(file)) {
    throw new UsageError(
      'missing configuration: no spillway.yaml in this folder; use --config FILE or --admin URL',
    )
  }
  const { redis, vendors, admin: port } = loadConfig({ file, ...placeholderSecrets(file) })
  const store = openStore({ ...requiredRedis(redis, file), commandTimeoutMs: COMMAND_MS })
  const close = () => store.close()
  try {
    await untilReady(store)
    const guards = Object.fromEntries(vendors.map(({ name, guard }) => [name, guard]))
    const { auditMs } = port
    const operator = createOperator({ store, guards, keys: keyNames(vendors), auditMs })
    return { operator, guards, explain: (id) => explainFromStore(store, id), close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Asks all pods through the store. */
async function explainFromStore(store: Store, requestId: string): Promise<Explanation> {
  const members = (await listMembers(store)).map(({ pod }) => pod)
  return askPods({ store, clock: systemClock, random: Math.random, requestId, members })
}

/** With everything that is needed to reach it, or an error that says what is missing. */
export function requiredRedis(
  redis: GatewayConfig['redis'],
  file: string,
): NonNullable<GatewayConfig['redis']> {
  if (redis === undefined) {
    throw new CommandError(
      `${file} has no redis: what is counted is in the gateway's own process. Ask that: --admin http://127.0.0.1:8081`,
    )
  }
  const { tls = {}, urls = [], sentinels = [], url, password } = redis
  const missing = [url, password, ...urls, ...sentinels, ...Object.values(tls)].find(isPlaceholder)
  if (missing === undefined) return redis
  throw new CommandError(`${file}: redis: ${missingIn(String(missing))} is not there`)
}

/** Or an error that says why not. */
export async function untilReady(store: { readonly ready: boolean; readonly problem: unknown }) {
  if (await isReady(store)) return
  const why = store.problem === undefined ? 'no answer' : messageOf(store.problem)
  throw new CommandError(`the store cannot be reached: ${why}`, EXIT.unavailable)
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function readUrl(text: string): URL {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return new URL(text)
  throw new UsageError(`--admin: must be a URL such as http://127.0.0.1:8081, got "${text}"`)
}

/** The operator's name in the audit log, unless `--by` is given. */
export function usualName(): string {
  return `${userInfo().username}@${hostname()}`.slice(0, 100)
}
