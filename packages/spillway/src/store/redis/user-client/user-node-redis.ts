/** Clients and clusters of node-redis that the application passes in. */

import {
  type Listener,
  type MessageListener,
  openSubscription,
  type Subscription,
  type SubscriptionOptions,
} from '../connection/subscription.js'
import {
  COMMAND_OPTIONS,
  dialedClient,
  isReady,
  type NodeRedisClient,
  ONE_CONNECTION,
} from '../drivers/node-redis.js'
import type { Dialed } from '../topology/redial.js'
import { slotOf } from '../topology/slot.js'
import type { RecognisedClient } from './recognised.js'

interface UserNodeRedis {
  readonly isOpen: boolean
  readonly isReady: boolean
  listenerCount(event: 'error'): number
  on(
    event: 'error' | 'ready' | 'connect' | 'node-ready',
    listener: (error: unknown) => void,
  ): unknown
  off(event: 'node-ready', listener: (error: unknown) => void): unknown
}

interface Client extends UserNodeRedis {
  readonly options?: { socket?: object; disableOfflineQueue?: boolean }
  sendCommand(args: readonly string[]): Promise<unknown>
  withCommandOptions(options: object): Client
  duplicate(overrides: object): NodeRedisClient
}

interface Cluster extends UserNodeRedis {
  /** Missing in its types. */
  readonly _options?: { defaults?: { disableOfflineQueue?: boolean } }
  sendCommand(key: string | undefined, readOnly: boolean, args: readonly string[]): Promise<unknown>
  withCommandOptions(options: object): Cluster
  subscribe(channel: string, onMessage: (text: string) => void): Promise<unknown>
  unsubscribe(channel: string, onMessage: (text: string) => void): Promise<unknown>
}

type Chances = Omit<SubscriptionOptions<Listener>, 'dial'>

/** The client, or its problem; undefined if it is of another library. */
export function recogniseNodeRedis(value: unknown): RecognisedClient | string | undefined {
  const userClient = Object(value) as Partial<Client>
  const methods = [userClient.sendCommand, userClient.withCommandOptions, userClient.on]
  if (!methods.every((method) => typeof method === 'function') || !('isReady' in userClient)) {
    return undefined
  }
  if ('getMasterNode' in userClient) {
    const why = 'after a failover it sends commands again that may already have run'
    return `must not be a Sentinel client of node-redis: ${why}; use redis.sentinels instead`
  }
  return 'getSlotMaster' in userClient ? ofCluster(value as Cluster) : ofClient(value as Client)
}

const SENDS_LATE =
  'otherwise it queues commands while it is offline, and sends them after their calls have ended'

function ofClient(userClient: Client): RecognisedClient | string {
  if (queues(userClient.options)) {
    return `must be created with disableOfflineQueue: true; ${SENDS_LATE}`
  }
  listenForErrors(userClient)
  // The same client and connection with other command options.
  const client = userClient.withCommandOptions(COMMAND_OPTIONS)
  return {
    isReady: () => isReady(userClient),
    cluster: false,
    send: (args) => client.sendCommand(args),
    onReady: (call) => whenReady(userClient, 'ready', call),
    subscribe: (chances) => (channel, listener) =>
      openSubscription(
        {
          dial: (lost) => dialedClient(lost, (socket) => duplicate(userClient, socket)),
          ...chances,
        },
        channel,
        listener,
      ),
  }
}

/** A copy of the application's client, for a separate connection. */
function duplicate(userClient: Client, socket: object): NodeRedisClient {
  return userClient.duplicate({
    ...ONE_CONNECTION,
    clientSideCache: undefined,
    socket: { ...userClient.options?.socket, ...socket },
  })
}

function ofCluster(userClient: Cluster): RecognisedClient | string {
  if (userClient._options !== undefined && queues(userClient._options.defaults ?? {})) {
    return `must be created with defaults: { disableOfflineQueue: true }; ${SENDS_LATE}`
  }
  listenForErrors(userClient)
  const client = userClient.withCommandOptions(COMMAND_OPTIONS)
  return {
    isReady: () => isReady(userClient),
    cluster: true,
    slotOf,
    send: (args, key) => client.sendCommand(key, false, args),
    onReady: (call) => whenReady(userClient, 'connect', call),
    subscribe: (chances) => (channel, listener) =>
      subscribeCluster(userClient, chances, channel, listener),
  }
}

/** Whether a client with these options queues commands until it is connected. */
function queues(options: { disableOfflineQueue?: boolean } | undefined): boolean {
  return options !== undefined && options.disableOfflineQueue !== true
}

/** Without a listener the first error ends the process. */
function listenForErrors(userClient: UserNodeRedis): void {
  if (userClient.listenerCount('error') === 0) userClient.on('error', () => {})
}

function whenReady(userClient: UserNodeRedis, event: 'ready' | 'connect', call: () => void): void {
  userClient.on(event, call)
  if (isReady(userClient)) call()
}

/**
 * A cluster client opens this connection itself and reopens it, maybe to another node. It does not
 * say which of its connections is up again, so any of them may be this one.
 */
function subscribeCluster(
  cluster: Cluster,
  chances: Chances,
  channels: string | readonly string[],
  listener: MessageListener,
): Subscription {
  const onReady = () => listener.onSubscribed()
  const dial = (): Dialed<Listener> => {
    const stops: (() => void)[] = []
    const subscribe: Listener['subscribe'] = async (name, onMessage) => {
      stops.push(() => void cluster.unsubscribe(name, onMessage).catch(() => {}))
      await cluster.subscribe(name, onMessage)
    }
    const drop = () => {
      for (const stop of stops) stop()
    }
    return { client: { subscribe }, open: async () => {}, drop }
  }
  const subscription = openSubscription({ dial, ...chances }, channels, listener)
  cluster.on('node-ready', onReady)
  return {
    close() {
      cluster.off('node-ready', onReady)
      subscription.close()
    },
  }
}
