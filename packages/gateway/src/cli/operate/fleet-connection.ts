/**
 * An operator's connection to the fleet: directly to the Redis server that the gateways
 * use; or, without one, through the admin port of one gateway.
 */
import { hostname, userInfo } from 'node:os'
import { type Explanation, queryPods } from '@spillway/dashboard'
import { createOperator, type GuardOptions } from 'spillway'
import { listMembers, systemClock } from 'spillway/internal'
import type { Store } from 'spillway/shared'
import { keyNames } from '../../config/config.js'
import { openStore } from '../../shared-store.js'
import { EXIT } from '../command.js'
import { CommandError } from '../command-error.js'
import { UsageError } from '../parse-args.js'
import { adminClient, type OperatorPart } from './admin-client.js'
import { readStoreSource, type StoreValues } from './store-source.js'
import { isReady } from './wait-until-ready.js'

export interface FleetConnection {
  readonly operator: OperatorPart
  /** Configured vendors by name; empty if they are only in the configuration of a gateway. */
  readonly guards: Readonly<Record<string, GuardOptions>> | undefined
  /** Explains what happened to a request, on any pod. */
  explain(requestId: string): Promise<Explanation>
  close(): Promise<void>
}

/** No call waits for an operator, so a slow answer is better than none. */
const COMMAND_MS = 5_000

/** Values of `OPERATING_OPTIONS`. */
export interface FleetValues extends StoreValues {
  readonly admin?: string | undefined
}

export async function openFleetConnection({
  admin,
  ...where
}: FleetValues): Promise<FleetConnection> {
  if (admin !== undefined) {
    const other = (['redis', 'prefix'] as const).find((name) => where[name] !== undefined)
    if (other !== undefined) throw new UsageError(`--${other}: not allowed with --admin`)
    const operator = adminClient(readUrl(admin), process.env.SPILLWAY_ADMIN_TOKEN)
    const { explain } = operator
    return { operator, guards: undefined, explain, close: async () => {} }
  }
  const { config, redis } = readStoreSource(where)
  const { vendors } = config
  const store = openStore({ ...redis, commandTimeoutMs: COMMAND_MS, emitWarnings: false })
  const close = () => store.close()
  try {
    await untilReady(store)
    const guards = Object.fromEntries(vendors.map(({ name, guard }) => [name, guard]))
    const { auditMs } = config.admin
    const operator = createOperator({ store, guards, keys: keyNames(vendors), auditMs })
    return { operator, guards, explain: (id) => explainFromStore(store, id), close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Searches all pods through the store. */
async function explainFromStore(store: Store, requestId: string): Promise<Explanation> {
  const members = (await listMembers(store)).map(({ pod }) => pod)
  return queryPods({ store, clock: systemClock, random: Math.random, requestId, members })
}

/** Throws an error with the reason if that fails. */
export async function untilReady(store: { readonly ready: boolean; readonly problem: unknown }) {
  if (await isReady(store)) return
  const why = store.problem === undefined ? 'no answer' : messageOf(store.problem)
  const remedy = 'check REDIS_URL, redis in the configuration, or --redis'
  throw new CommandError(`the store is unreachable: ${why}; ${remedy}`, EXIT.unavailable)
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function readUrl(text: string): URL {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return new URL(text)
  throw new UsageError(`--admin: must be a URL such as http://127.0.0.1:8081, got "${text}"`)
}

/** The operator's name in the audit log, unless `--by` is given. */
export function defaultOperatorName(): string {
  return `${userInfo().username}@${hostname()}`.slice(0, 100)
}
