/**
 * Redis through node-redis, the package `redis`: a connection of our own, or a client or cluster that
 * the application already has. The package is an optional peer dependency, loaded when needed.
 */
import type { ConnectionOptions } from 'node:tls'
import { refuse } from '../../core/errors.js'
import { validate } from '../../core/options.js'
import type { FailureKind } from '../store-failure.js'
import {
  type NodeRedisClient as Client,
  type NodeRedisCluster as Cluster,
  type NodeRedisOptions,
  readNodeRedisOptions,
} from './node-redis-options.js'
import { type Line, Redial, type RedialOptions } from './redial.js'
import type { RedisClient } from './runner.js'
import {
  type Hearer,
  type Listener,
  openSubscription,
  type Subscribe,
  type Subscription,
} from './subscription.js'

type Package = typeof import('redis')
type Lost = (problem: unknown) => void

/** TCP and TLS; `Redial` watches over the rest of the way. */
const CONNECT_MS = 3_000
const DEFAULT_URL = 'redis://127.0.0.1:6379'

/**
 * Without a word about `timeout`, node-redis makes an `AbortSignal` and a timer for every command,
 * ten times the cost of the rest; type mappings would change what a reply looks like. Said once and
 * not with each command, because then node-redis would merge the two each time.
 */
const COMMAND_OPTIONS = { timeout: undefined, typeMapping: undefined }

export interface NodeRedisConnection extends RedisClient {
  /** Takes a connection of its own, which does not keep the process alive, until it is closed. */
  readonly subscribe: Subscribe
}

/**
 * Connects in the background: an unreachable server is no error here, `ready` and `problem` say how
 * it stands. The connection alone does not keep the process alive; a command under way does.
 */
export function connectNodeRedis(options: NodeRedisOptions): NodeRedisConnection {
  const own = validate('redis', options, readNodeRedisOptions)
  const { url = DEFAULT_URL, tls, client, clock, random } = own
  if (client !== undefined) return useClient(client, { clock, random })
  const loading = loadPackage()
  const dial = async (lost: Lost) => createLine(await loading, url, tls, lost)
  const connection = new Redial<Client>({ dial, clock, random })
  return {
    get ready() {
      return isReady(connection.client)
    },
    get problem() {
      return connection.problem
    },
    send: (args) => connection.client?.sendCommand(args) ?? refuse(new Error(OFFLINE)),
    kindOf,
    reconnect: () => connection.hangUp(new Error('the server was silent')),
    subscribe: (channel, hearer) => openSubscription({ dial, clock, random }, channel, hearer),
    close: async () => connection.close(),
  }
}

function createLine(
  { createClient }: Package,
  url: string,
  tls: ConnectionOptions | undefined,
  lost: Lost,
): Line<Client> {
  return lineOf(lost, (socket) =>
    createClient({
      url,
      // Nothing of RESP 3 is needed, and older servers and proxies do not speak it.
      RESP: 2,
      ...ONE_CONNECTION,
      socket: { ...tls, tls: url.startsWith('rediss:'), connectTimeout: CONNECT_MS, ...socket },
    } as object),
  )
}

const ONE_CONNECTION = { disableOfflineQueue: true, commandOptions: COMMAND_OPTIONS }

/** Like a client of the application, but for one connection, and ours. */
function duplicateLine(given: Client, lost: Lost): Line<Client> {
  return lineOf(lost, (socket) =>
    given.duplicate({
      ...ONE_CONNECTION,
      clientSideCache: undefined,
      socket: { ...given.options?.socket, ...socket },
    }),
  )
}

function lineOf(lost: Lost, create: (socket: object) => Client): Line<Client> {
  const hangUp = new AbortController()
  // `destroy` does not reach a socket that is still connecting; the signal does.
  const client = create({ reconnectStrategy: false, signal: hangUp.signal })
  client.on('error', lost)
  client.unref()
  return {
    client,
    open: () => client.connect(),
    drop: () => {
      // An error reaches us before the commands under way; let them have it, too.
      queueMicrotask(() => {
        destroy(client)
        hangUp.abort()
      })
    },
  }
}

/** Also takes a client out of the package's books, so it is called for one that never connected. */
function destroy(client: { destroy(): void }): void {
  try {
    client.destroy()
  } catch {
    // Before 6.3 that was an error.
  }
}

async function loadPackage(): Promise<Package> {
  try {
    return await import('redis')
  } catch (cause) {
    const problem = new Error(
      "the package 'redis' is missing: npm install redis, or pass a client of your own",
      { cause },
    )
    process.emitWarning(problem.message, { type: 'SpillwayWarning' })
    throw problem
  }
}

function useClient(
  given: Client | Cluster,
  chances: Pick<RedialOptions<unknown>, 'clock' | 'random'>,
): NodeRedisConnection {
  // Nobody listening for errors means that the first one ends the process.
  if (given.listenerCount('error') === 0) given.on('error', () => {})
  // The same client and connection, asked in another way.
  const client = given.withCommandOptions(COMMAND_OPTIONS)
  return {
    get ready() {
      return isReady(given)
    },
    problem: undefined,
    send: isCluster(client)
      ? (args, key) => client.sendCommand(key, false, args)
      : (args) => client.sendCommand(args),
    kindOf,
    subscribe: (channel, hearer) =>
      isCluster(given)
        ? subscribeCluster(given, chances, channel, hearer)
        : openSubscription(
            { dial: (lost) => duplicateLine(given, lost), ...chances },
            channel,
            hearer,
          ),
    close: async () => {},
  }
}

/**
 * A cluster makes the connection by itself and makes it again, maybe to another node. It does not say
 * which of its connections is up again, so any of them may be this one.
 */
function subscribeCluster(
  cluster: Cluster,
  chances: Pick<RedialOptions<unknown>, 'clock' | 'random'>,
  channel: string,
  hearer: Hearer,
): Subscription {
  const onReady = () => hearer.onSubscribed()
  const dial = (): Line<Listener> => {
    let stop = () => {}
    const subscribe: Listener['subscribe'] = async (name, hear) => {
      stop = () => void cluster.unsubscribe(name, hear).catch(() => {})
      await cluster.subscribe(name, hear)
    }
    return { client: { subscribe }, open: async () => {}, drop: () => stop() }
  }
  const subscription = openSubscription({ dial, ...chances }, channel, hearer)
  cluster.on('node-ready', onReady)
  return {
    close() {
      cluster.off('node-ready', onReady)
      subscription.close()
    },
  }
}

/** A client that is being closed is still ready but no longer open. */
function isReady(client: Client | Cluster | undefined): boolean {
  return client?.isReady === true && client.isOpen
}

function isCluster(client: Client | Cluster): client is Cluster {
  return 'getSlotMaster' in client
}

const OFFLINE = 'The client is offline'

/** Errors that `sendCommand` raises before it has written anything. */
const NEVER_WRITTEN = new Set([
  OFFLINE,
  'The client is closed',
  'The queue is full',
  'The command was aborted',
])

/**
 * By message, because an application may have another copy of the package, with other classes. The
 * server's errors begin with a word in capitals; those of sockets and of the client never do.
 */
function kindOf(error: unknown): FailureKind {
  const message = error instanceof Error ? error.message : ''
  if (/^[A-Z][A-Z\d_-]+(?: |$)/.test(message)) return 'server'
  return NEVER_WRITTEN.has(message) ? 'not-sent' : 'ambiguous'
}
