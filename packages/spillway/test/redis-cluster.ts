/** A real cluster for tests: three masters with a replica each, as separate processes. */
import { vi } from 'vitest'
import { slotOf } from '../src/store/redis/topology/slot.js'
import { freePort, type RedisServer, type ServerOptions, startRedis } from './redis-server.js'

const MASTERS = 3
const LAST_SLOT = 16_383
/** Long enough that a busy machine is not taken for a dead server. */
const CALM_MS = 30_000

export interface RedisCluster {
  /** The original masters first. */
  readonly nodes: readonly RedisServer[]
  readonly urls: string[]
  /** The server that owns the key now. */
  masterOf(key: string): Promise<RedisServer>
  /** The current masters. */
  masters(): Promise<RedisServer[]>
  stop(): Promise<void>
}

export interface ClusterOptions extends Pick<ServerOptions, 'settings' | 'login' | 'tls'> {
  /** A master that does not answer for this time is replaced. */
  downMs?: number
}

export async function startCluster({
  settings = {},
  downMs = CALM_MS,
  ...login
}: ClusterOptions = {}): Promise<RedisCluster> {
  const nodes = await Promise.all(
    Array.from({ length: 2 * MASTERS }, async () => {
      const busPort = await freePort()
      const node = await startRedis({
        ...login,
        settings: {
          'cluster-enabled': 'yes',
          'cluster-port': busPort,
          'cluster-node-timeout': downMs,
          'cluster-replica-validity-factor': 0,
          'repl-diskless-sync-delay': 0,
          ...settings,
        },
      })
      return { ...node, busPort }
    }),
  )
  const masters = nodes.slice(0, MASTERS)
  await Promise.all(
    masters.map(async (node, index) => {
      const from = Math.floor(((LAST_SLOT + 1) * index) / MASTERS)
      const to = Math.floor(((LAST_SLOT + 1) * (index + 1)) / MASTERS) - 1
      await node.send('CLUSTER', 'ADDSLOTSRANGE', String(from), String(to))
      await node.send('CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1))
    }),
  )
  // Each node meets each other one, because gossip would take longer.
  for (const node of nodes) {
    for (const { port, busPort } of nodes.filter((other) => other !== node)) {
      await node.send('CLUSTER', 'MEET', '127.0.0.1', String(port), String(busPort))
    }
  }
  await untilAll(nodes, 'INFO', (info) => info.includes(`cluster_known_nodes:${nodes.length}\r`))
  await Promise.all(
    nodes.slice(MASTERS).map(async (node, index) => {
      const id = String(await masters[index]?.send('CLUSTER', 'MYID'))
      await vi.waitUntil(() => node.send('CLUSTER', 'REPLICATE', id).catch(() => false), WAIT)
    }),
  )
  await untilAll(nodes, 'INFO', (info) => info.includes('cluster_state:ok'))
  await untilAll(nodes, 'SLOTS', (slots) => slots.split(',').length > 2 * nodes.length)
  for (const node of nodes.slice(MASTERS)) {
    await vi.waitUntil(async () => {
      return String(await node.send('INFO', 'replication')).includes('master_link_status:up')
    }, WAIT)
  }
  const isMaster = async (node: RedisServer) =>
    String(await node.send('ROLE').catch(() => '')).startsWith('master')
  return {
    nodes,
    urls: nodes.map(({ url }) => url),
    async masterOf(key) {
      for (const node of nodes) {
        const slots = await node.send('CLUSTER', 'SLOTS').catch(() => [])
        for (const [from, to, [, port]] of slots as [number, number, [string, number]][]) {
          if (from <= slotOf(key) && slotOf(key) <= to) {
            return nodes.find((each) => each.port === port) as RedisServer
          }
        }
      }
      throw new Error('the cluster is gone')
    },
    async masters() {
      const found: RedisServer[] = []
      for (const node of nodes) if (await isMaster(node)) found.push(node)
      return found
    },
    async stop() {
      await Promise.all(nodes.map((node) => node.kill()))
    },
  }
}

const WAIT = { timeout: 20_000, interval: 20 }

async function untilAll(
  nodes: readonly RedisServer[],
  what: 'INFO' | 'SLOTS',
  isSo: (answer: string) => boolean,
): Promise<void> {
  for (const node of nodes) {
    await vi.waitUntil(async () => isSo(String(await node.send('CLUSTER', what))), WAIT)
  }
}
