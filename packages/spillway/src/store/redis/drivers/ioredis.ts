/** Connections through ioredis, version 5 or 6: an optional peer dependency, loaded when needed. */
import type { Socket } from 'node:net'
import type { Dialed } from '../topology/redial.js'
import { CONNECT_MS, type Connection, type Driver, type Lost } from './driver.js'

/** The part of the client that we use. */
export interface IoredisClient {
  readonly status: string
  readonly stream?: Socket | undefined
  on(event: string, listener: (...args: never[]) => void): unknown
  call(command: string, ...args: string[]): Promise<unknown>
  connect(): Promise<unknown>
  disconnect(): void
  subscribe(channel: string): Promise<unknown>
  ping(): Promise<unknown>
}

type ClientClass = new (options: object) => IoredisClient

/**
 * Options of a client for one connection: it neither reconnects nor queues. The ready check would
 * send INFO and wait; our own handshake does that.
 */
export const ONE_CONNECTION = {
  // RESP 3 is not needed, and older servers and proxies do not support it.
  protocol: 2,
  lazyConnect: true,
  retryStrategy: null,
  enableOfflineQueue: false,
  enableReadyCheck: false,
  enableAutoPipelining: false,
  autoResendUnfulfilledCommands: false,
  autoResubscribe: false,
  maxRetriesPerRequest: 0,
  commandTimeout: undefined,
  disableClientInfo: true,
}

export async function loadIoredis(): Promise<Driver> {
  const driver = ioredisDriver(await import('ioredis'))
  if (driver === undefined) throw new Error("the package 'ioredis' has no class Redis")
  return driver
}

/** Accepts the package, imported in any way, or its class. Undefined for another package. */
export function ioredisDriver(value: unknown): Driver | undefined {
  const given = Object(value) as { Redis?: unknown; default?: unknown }
  const Redis = [given.Redis, given.default, value].find(isClientClass)
  return Redis && driverOf(Redis)
}

function isClientClass(value: unknown): value is ClientClass {
  if (typeof value !== 'function') return false
  const methods = Object(value.prototype) as Partial<IoredisClient>
  return typeof methods.call === 'function' && typeof methods.disconnect === 'function'
}

function driverOf(Redis: ClientClass): Driver {
  return {
    prepare: (address, tls, lost) =>
      dialedClient(
        new Redis({ ...ONE_CONNECTION, ...address, tls, connectTimeout: CONNECT_MS }),
        lost,
      ),
  }
}

export function dialedClient(client: IoredisClient, lost: Lost): Dialed<Connection> {
  client.on('error', lost)
  client.on('end', () => lost(new Error('the connection was closed')))
  client.on('connect', () => client.stream?.unref())
  let corked = false
  const uncork = () => {
    corked = false
    client.stream?.uncork()
  }
  return {
    client: {
      get ready() {
        return client.status === 'ready'
      },
      send(args) {
        // ioredis writes each command separately. Corking the socket sends those of one turn
        // together.
        if (!corked && client.stream !== undefined) {
          corked = true
          client.stream.cork()
          process.nextTick(uncork)
        }
        const [command = '', ...rest] = args
        return client.call(command, ...rest)
      },
      async subscribe(channel, onMessage) {
        client.on('message', (from: string, text: string) => {
          if (from === channel) onMessage(text)
        })
        await client.subscribe(channel)
      },
      ping: () => client.ping(),
    },
    open: () => client.connect(),
    drop: () => {
      // The error event comes before running commands are rejected; they should get that error,
      // too.
      queueMicrotask(() => {
        // `disconnect` would wait up to two seconds for the server to close.
        if (client.stream === undefined) client.disconnect()
        else client.stream.destroy()
      })
    },
  }
}
