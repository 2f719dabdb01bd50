/** Connections through node-redis, the package `redis`: an optional peer dependency, loaded when needed. */
import type { ConnectionOptions } from 'node:tls'
import type { Address } from '../topology/address.js'
import type { Dialed } from '../topology/redial.js'
import { CONNECT_MS, type Connection, type Driver, type Lost } from './driver.js'

/** The part of the client that we use. */
export interface NodeRedisClient {
  readonly isOpen: boolean
  readonly isReady: boolean
  on(event: 'error', listener: (error: unknown) => void): unknown
  sendCommand(args: readonly string[]): Promise<unknown>
  connect(): Promise<unknown>
  subscribe(channel: string, onMessage: (text: string) => void): Promise<unknown>
  ping(): Promise<unknown>
  unref(): void
  destroy(): void
}

interface Package {
  createClient(options: object): NodeRedisClient
}

/**
 * Unless `timeout` is set, node-redis creates an `AbortSignal` and a timer for every command, ten
 * times the cost of the rest. Type mappings would change the form of replies. Set once and not per
 * command, because node-redis would merge the options each time.
 */
export const COMMAND_OPTIONS = { timeout: undefined, typeMapping: undefined }

/** Options of a client for one connection. */
export const ONE_CONNECTION = { disableOfflineQueue: true, commandOptions: COMMAND_OPTIONS }

export async function loadNodeRedis(): Promise<Driver> {
  return driverOf((await import('redis')) as unknown as Package)
}

/** Undefined for another package. */
export function nodeRedisDriver(value: unknown): Driver | undefined {
  const given = Object(value) as Partial<Package>
  return typeof given.createClient === 'function' ? driverOf(given as Package) : undefined
}

function driverOf({ createClient }: Package): Driver {
  return {
    prepare: (address, tls, lost) =>
      dialedClient(lost, (socket) => createClient(optionsOf(address, tls, socket))),
  }
}

function optionsOf(address: Address, tls: ConnectionOptions | undefined, socket: object): object {
  return {
    // RESP 3 is not needed, and older servers and proxies do not support it.
    RESP: 2,
    disableClientInfo: true,
    ...ONE_CONNECTION,
    socket: {
      ...tls,
      ...address,
      tls: tls !== undefined,
      connectTimeout: CONNECT_MS,
      ...socket,
      toJSON: ignored,
    },
  }
}

/**
 * node-redis builds a class with all commands for each new set of options, in about 40 ms of CPU time. It compares the
 * options as JSON and keeps the last class only. The class does not depend on the address, so that is left out.
 */
function ignored(): undefined {
  return undefined
}

export function dialedClient(
  lost: Lost,
  create: (socket: object) => NodeRedisClient,
): Dialed<Connection> {
  const hangUp = new AbortController()
  // `destroy` does not close a socket that is still connecting; the signal does.
  const client = create({ reconnectStrategy: false, signal: hangUp.signal })
  client.on('error', lost)
  client.unref()
  return {
    client: {
      get ready() {
        return isReady(client)
      },
      send: (args) => client.sendCommand(args),
      subscribe: (channel, onMessage) => client.subscribe(channel, onMessage),
      ping: () => client.ping(),
    },
    open: () => client.connect(),
    drop: () => {
      // The error event comes before running commands are rejected; they should get that error,
      // too.
      queueMicrotask(() => {
        destroy(client)
        hangUp.abort()
      })
    },
  }
}

/** A client that is being closed is still ready but no longer open. */
export function isReady(client: { isReady: boolean; isOpen: boolean }): boolean {
  return client.isReady && client.isOpen
}

/**
 * Also removes a client from the package's registry, so it is called for one that never connected.
 */
function destroy(client: NodeRedisClient): void {
  try {
    client.destroy()
  } catch {
    // An error before 6.3.
  }
}
