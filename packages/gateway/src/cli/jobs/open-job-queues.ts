/** Which queues there are, and where: by a configuration, or by what was typed. */
import { existsSync } from 'node:fs'
import type { JobQueue } from 'spillway/shared'
import { createJobQueue, type Store } from 'spillway/shared'
import type { GatewayConfig, QueueConfig, RedisConfig } from '../../config/config.js'
import { loadConfig } from '../../config/load.js'
import { placeholderSecrets } from '../../config/placeholder-secrets.js'
import { openStore } from '../../shared-store.js'
import { requiredRedis, USUAL_FILE, untilReady } from '../operate/fleet-connection.js'
import { didYouMean, UsageError } from '../parse-args.js'

interface QueueCommon {
  /** Nothing: `spillway.yaml`, if there is one here. */
  readonly config: string | undefined
  /** In place of the configuration's. */
  readonly redis: string | undefined
  readonly prefix: string | undefined
  readonly json: boolean
}

export type QueueCommand = QueueCommon &
  (
    | { readonly verb: 'ls' }
    | {
        readonly verb: 'show'
        readonly name: string
        /** A job; nothing: the queue, and its oldest dead letters. */
        readonly id: string | undefined
        readonly count: number
      }
    | {
        readonly verb: 'retry' | 'drop'
        readonly name: string
        /** Nothing: all dead letters. */
        readonly id: string | undefined
        readonly yes: boolean
      }
  )

export interface OpenQueues {
  readonly configured: readonly QueueConfig[]
  open(name: string): NamedQueue
  close(): Promise<void>
}

export interface NamedQueue {
  readonly name: string
  readonly guard: string
  readonly jobs: JobQueue
}

export async function openQueues(command: QueueCommand): Promise<OpenQueues> {
  const file = command.config ?? (existsSync(USUAL_FILE) ? USUAL_FILE : undefined)
  const config = file === undefined ? undefined : loadConfig({ file, ...placeholderSecrets(file) })
  const store = openStore(whereIs(command, config, file))
  try {
    await untilReady(store)
  } catch (error) {
    await store.close()
    throw error
  }
  const configured = config?.jobQueues ?? []
  return {
    configured,
    open: (name) => find(name, configured, store),
    close: () => store.close(),
  }
}

function whereIs(
  { redis, prefix }: QueueCommand,
  config: GatewayConfig | undefined,
  file: string | undefined,
): RedisConfig {
  const own = prefix !== undefined && { prefix }
  if (redis === undefined && config !== undefined && file !== undefined) {
    return { ...requiredRedis(config.redis, file), ...own }
  }
  const url = redis ?? process.env.REDIS_URL
  if (url === undefined) {
    throw new UsageError('missing Redis server; use --config FILE or --redis URL')
  }
  if (!URL.canParse(url)) throw new UsageError('--redis: must be a redis:// URL')
  return { url, ...own }
}

/** A queue of a program is not in the configuration: that of its guard's name, and its own. */
function find(name: string, configured: readonly QueueConfig[], store: Store): NamedQueue {
  const known = configured.find((each) => each.name === name)
  if (known !== undefined) {
    const { vendor: guard, settings } = known
    const { backoff: _, baseMs: __, maxMs: ___, jitter: ____, ...own } = settings
    return { name, guard, jobs: createJobQueue({ ...own, store, name, guard }) }
  }
  const slash = name.indexOf('/')
  if (slash > 0 && slash < name.length - 1) {
    const [guard, queue] = [name.slice(0, slash), name.slice(slash + 1)]
    return { name, guard, jobs: createJobQueue({ store, name: queue, guard }) }
  }
  const names = configured.map((each) => each.name)
  const hint = names.length === 0 ? '; write GUARD/QUEUE' : didYouMean(name, names)
  throw new UsageError(`unknown job queue "${name}"${hint}`)
}
