/**
 * Clients of ioredis that the application passes in: of one server, of Sentinels, or of a cluster.
 */
import { refuse } from '../../../core/errors.js'
import { OFFLINE } from '../connection/failure-kind.js'
import { openSubscription } from '../connection/subscription.js'
import { dialedClient, type IoredisClient, ONE_CONNECTION } from '../drivers/ioredis.js'
import { slotOf } from '../topology/slot.js'
import type { RecognisedClient } from './recognised.js'

interface UserNodeRedis extends IoredisClient {
  listenerCount(event: 'error'): number
}

interface Client extends UserNodeRedis {
  readonly options: {
    enableOfflineQueue?: boolean
    autoResendUnfulfilledCommands?: boolean
    stringNumbers?: boolean
  }
  duplicate(overrides: object): IoredisClient
}

interface Cluster extends UserNodeRedis {
  readonly options: {
    enableOfflineQueue?: boolean
    retryDelayOnFailover?: number
    clusterNodeRetryStrategy?: unknown
    redisOptions?: Client['options']
  }
  nodes(role: 'master'): Client[]
}

/** The client, or its problem; undefined if it is of another library. */
export function recogniseIoredis(value: unknown): RecognisedClient | string | undefined {
  const userClient = Object(value) as Partial<Client>
  const methods = [userClient.call, userClient.duplicate, userClient.on, userClient.disconnect]
  if (!methods.every((method) => typeof method === 'function')) return undefined
  return 'nodes' in userClient ? ofCluster(value as Cluster) : ofClient(value as Client)
}

const created = (setting: string, otherwise: string) =>
  `must be created with ${setting}; otherwise ${otherwise}`
const RESENDS_COMMANDS = 'it sends commands again that may already have run'
const SENDS_LATE =
  'it queues commands while it is offline, and sends them after their calls have ended'
const NUMBERS_AS_TEXT = 'it changes the numbers in replies to text'

function ofClient(userClient: Client): RecognisedClient | string {
  const { options } = userClient
  if (options.enableOfflineQueue !== false) return created('enableOfflineQueue: false', SENDS_LATE)
  if (options.autoResendUnfulfilledCommands !== false) {
    return created('autoResendUnfulfilledCommands: false', RESENDS_COMMANDS)
  }
  if (options.stringNumbers === true) return created('stringNumbers: false', NUMBERS_AS_TEXT)
  return recognised(userClient, () => userClient)
}

function ofCluster(userClient: Cluster): RecognisedClient | string {
  const { enableOfflineQueue, retryDelayOnFailover, ...options } = userClient.options
  const { redisOptions = {} } = options
  if (enableOfflineQueue !== false) return created('enableOfflineQueue: false', SENDS_LATE)
  if (retryDelayOnFailover !== 0) return created('retryDelayOnFailover: 0', RESENDS_COMMANDS)
  // Otherwise ioredis never reconnects to a node but creates a new client for it.
  const reconnects = typeof options.clusterNodeRetryStrategy === 'function'
  if (reconnects && redisOptions.autoResendUnfulfilledCommands !== false) {
    return created('redisOptions: { autoResendUnfulfilledCommands: false }', RESENDS_COMMANDS)
  }
  if (redisOptions.stringNumbers === true) return created('stringNumbers: false', NUMBERS_AS_TEXT)
  const anyNode = () => {
    const [node] = userClient.nodes('master')
    if (node === undefined) throw new Error('the cluster is not connected')
    return node
  }
  // In a cluster, published messages reach every node.
  const client = recognised(userClient, anyNode)
  return { ...client, cluster: true, slotOf, isReady: allConnected(userClient, client.isReady) }
}

/**
 * A cluster client connects to a node on its first command and refuses other commands until then.
 * So this makes it connect to all of them first.
 */
function allConnected(userClient: Cluster, isReady: () => boolean): () => boolean {
  let complete = false
  const connect = () => {
    for (const node of userClient.nodes('master')) {
      if (node.status === 'wait') node.connect().catch(() => {})
    }
  }
  userClient.on('ready', connect)
  userClient.on('+node', connect)
  connect()
  return () => {
    const nodes = complete ? [] : userClient.nodes('master')
    complete ||= nodes.length > 0 && nodes.every(({ status }) => status === 'ready')
    return complete && isReady()
  }
}

function recognised(userClient: UserNodeRedis, listenTo: () => Client): RecognisedClient {
  // Otherwise ioredis writes each error to the console.
  if (userClient.listenerCount('error') === 0) userClient.on('error', () => {})
  const isReady = () => userClient.status === 'ready'
  return {
    isReady,
    cluster: false,
    send(args) {
      if (!isReady()) return refuse(new Error(OFFLINE))
      const [command = '', ...rest] = args
      return userClient.call(command, ...rest)
    },
    onReady(call) {
      userClient.on('ready', call)
      if (isReady()) call()
    },
    subscribe: (chances) => (channel, listener) =>
      openSubscription(
        {
          // A copy of the application's client, for a separate connection.
          dial: (lost) =>
            dialedClient(
              listenTo().duplicate({ ...ONE_CONNECTION, sentinelRetryStrategy: null }),
              lost,
            ),
          ...chances,
        },
        channel,
        listener,
      ),
  }
}
