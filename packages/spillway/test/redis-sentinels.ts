/** A real master with a replica and three real Sentinels. */
import { vi } from 'vitest'
import { type RedisServer, type ServerOptions, startRedis } from './redis-server.js'

export const MASTER = 'the-master'
const SENTINELS = 3
/** Long enough that a busy machine is not taken for a dead server. */
const CALM_MS = 30_000

/** The default interval of ten seconds would slow the tests down. */
const HASTE = ['info-period', '200', 'publish-period', '200', 'ask-period', '200']

export interface Watched {
  /** The original master first. */
  readonly servers: readonly RedisServer[]
  readonly sentinels: readonly RedisServer[]
  readonly urls: string[]
  /** The current master according to the Sentinels. */
  master(): Promise<RedisServer>
  /** Resolves when all Sentinels name the same master. They learn of a failover from each other. */
  untilAgreed(): Promise<void>
  stop(): Promise<void>
}

export interface SentinelOptions extends Pick<ServerOptions, 'settings' | 'login' | 'tls'> {
  /** A master that does not answer for this time is replaced. */
  downMs?: number
  /** More lines for the configuration of the Sentinels. */
  conf?: string
}

export async function startSentinels({
  settings = {},
  downMs = CALM_MS,
  conf = '',
  ...login
}: SentinelOptions = {}): Promise<Watched> {
  const tls = login.tls === undefined ? {} : { tls: login.tls }
  const first = await startRedis({ settings, ...login })
  const replicaof = `127.0.0.1 ${first.port}`
  const second = await startRedis({
    settings: { ...settings, replicaof, 'repl-diskless-sync-delay': 0 },
    ...login,
  })
  const servers = [first, second]
  await vi.waitUntil(
    async () => String(await second.send('INFO', 'replication')).includes('master_link_status:up'),
    WAIT,
  )
  const sentinel = `
    sentinel monitor ${MASTER} 127.0.0.1 ${first.port} 2
    sentinel down-after-milliseconds ${MASTER} ${downMs}
    sentinel failover-timeout ${MASTER} 1500
    ${conf}`
  const sentinels = await Promise.all(
    Array.from({ length: SENTINELS }, () => startRedis({ sentinel, ...tls })),
  )
  await Promise.all(sentinels.map((each) => each.send('SENTINEL', 'DEBUG', ...HASTE)))
  const readFields = async (each: RedisServer) =>
    fieldsOf((await each.send('SENTINEL', 'MASTER', MASTER)) as string[])
  for (const each of sentinels) {
    await vi.waitUntil(async () => {
      const fields = await readFields(each)
      const others = Number(fields.get('num-other-sentinels'))
      return others === SENTINELS - 1 && fields.get('num-slaves') === '1'
    }, WAIT)
  }
  return {
    servers,
    sentinels,
    urls: sentinels.map(({ url }) => url),
    async master() {
      const port = Number((await readFields(sentinels[0] as RedisServer)).get('port'))
      return servers.find((each) => each.port === port) as RedisServer
    },
    async untilAgreed() {
      await vi.waitUntil(async () => {
        const fields = await Promise.all(sentinels.map(readFields))
        return new Set(fields.map((each) => each.get('port'))).size === 1
      }, WAIT)
    },
    async stop() {
      await Promise.all([...sentinels, ...servers].map((each) => each.kill()))
    },
  }
}

const WAIT = { timeout: 20_000, interval: 20 }

function fieldsOf(namesAndValues: readonly string[]): Map<string, string> {
  const fields = new Map<string, string>()
  for (let at = 0; at < namesAndValues.length; at += 2)
    fields.set(namesAndValues[at] ?? '', namesAndValues[at + 1] ?? '')
  return fields
}
