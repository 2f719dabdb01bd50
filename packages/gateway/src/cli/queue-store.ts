/** Which queues there are, and where: by a configuration, or by what was typed. */
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { JobQueue } from 'spillway'
import { redisStore } from 'spillway/redis'
import { createJobQueue, type Store } from 'spillway/shared'
import type { GatewayConfig, QueueConfig } from '../config/config.js'
import { loadConfig } from '../config/load.js'
import type { QueueCommand } from './queue-command.js'
import { didYouMean, UsageError } from './usage.js'

const USUAL_FILE = 'spillway.yaml'
/** Whoever looks after a queue needs none of the secrets in it: something of their form will do. */
const UNKNOWN = 'redis://unknown'
const CONNECT_MS = 5_000
const LOOK_MS = 20

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

/** Redis does not answer, or will not have us. */
export class QueueStoreError extends Error {
  readonly code = 'QUEUE_STORE'
}

export async function openQueues(command: QueueCommand): Promise<OpenQueues> {
  const file = command.config ?? (existsSync(USUAL_FILE) ? USUAL_FILE : undefined)
  const config = file === undefined ? undefined : readConfig(file)
  const store = await connect(addressOf(command, config, file))
  const configured = config?.queues ?? []
  return {
    configured,
    open: (name) => find(name, configured, store),
    close: () => store.close(),
  }
}

function readConfig(file: string): GatewayConfig {
  const env = new Proxy<Record<string, string>>(
    {},
    {
      get: (_, name: string) => process.env[name] ?? UNKNOWN,
      getOwnPropertyDescriptor: (_, name: string) => ({
        value: process.env[name] ?? UNKNOWN,
        configurable: true,
        enumerable: true,
      }),
    },
  )
  const readFile = (path: string) => {
    try {
      return readFileSync(path, 'utf8')
    } catch (error) {
      if (resolve(path) === resolve(file)) throw error
      return UNKNOWN
    }
  }
  return loadConfig({ file, env, readFile })
}

function addressOf(
  { redis, prefix }: QueueCommand,
  config: GatewayConfig | undefined,
  file: string | undefined,
): { url: string; prefix?: string } {
  const url = redis ?? config?.redis?.url ?? process.env.REDIS_URL
  if (url === undefined) {
    throw new UsageError('where is Redis? Name a configuration with --config, or --redis URL')
  }
  if (url === UNKNOWN) {
    const where = file === undefined ? '' : ` that ${file} refers to`
    throw new UsageError(
      `the Redis${where} is not known here: set its variable, or use --redis URL`,
    )
  }
  if (!URL.canParse(url)) throw new UsageError('--redis: must be a redis:// URL')
  const own = prefix ?? config?.redis?.prefix
  return { url, ...(own !== undefined && { prefix: own }) }
}

/** Until it answers, or has said why not. */
async function connect(address: { url: string; prefix?: string }): Promise<Store> {
  const store = redisStore({ ...address, commandTimeoutMs: CONNECT_MS })
  const lastMs = performance.now() + CONNECT_MS
  while (!store.ready && store.problem === undefined && performance.now() < lastMs) {
    await new Promise((wake) => setTimeout(wake, LOOK_MS))
  }
  if (store.ready) return store
  const { problem } = store
  await store.close()
  const why = problem instanceof Error ? problem.message : `it did not answer in ${CONNECT_MS} ms`
  throw new QueueStoreError(`Redis: ${why}`)
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
  throw new UsageError(`there is no queue "${name}"${hint}`)
}
