/** A connection to one Redis server, for commands outside the store's port. */
import { createClient } from 'redis'
import type { RedisConfig } from '../../config/config.js'

export interface Link {
  send(...command: string[]): Promise<unknown>
  close(): void
}

const CONNECT_MS = 2_000

export async function openLink(url: string, redis: RedisConfig): Promise<Link> {
  const { username, password, database, tls } = redis
  const { protocol, pathname } = new URL(url)
  const socket = { connectTimeout: CONNECT_MS, reconnectStrategy: false as const }
  const client = createClient({
    ...(protocol === 'unix:' ? { socket: { ...socket, path: pathname } } : { url }),
    ...(protocol === 'unix:'
      ? {}
      : { socket: protocol === 'rediss:' ? { ...socket, tls: true, ...tls } : socket }),
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(database !== undefined && { database }),
    disableOfflineQueue: true,
    commandOptions: { timeout: CONNECT_MS },
  } as Parameters<typeof createClient>[0])
  client.on('error', () => {})
  await client.connect()
  return {
    send: (...command) => client.sendCommand(command),
    close: () => client.destroy(),
  }
}
