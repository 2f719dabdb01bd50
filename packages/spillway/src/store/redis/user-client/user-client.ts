/**
 * A client that the application passes in, of node-redis or ioredis, for one server or a cluster. It is used
 * unchanged and never closed. It reconnects in its own way, so a client that could send a debit twice, or long after
 * the call was given up, is rejected.
 */

import type { Check } from '../../../core/options/checks.js'
import type { Random } from '../../../core/random.js'
import type { Clock } from '../../../core/time/clock.js'
import { kindOf } from '../connection/failure-kind.js'
import type { RedisConnection } from '../connection/redis-connection.js'
import { type Access, checkAccess, subscribeDenied } from '../setup/access.js'
import { judge } from '../setup/server-info.js'
import { RedisSetupError, UNREACHABLE_CODE, type Warn } from '../setup/setup-error.js'
import type { RecognisedClient } from './recognised.js'
import { recogniseIoredis } from './user-ioredis.js'
import { recogniseNodeRedis } from './user-node-redis.js'

export const readClient: Check<RecognisedClient> = (value, path, problems) => {
  const found =
    recogniseIoredis(value) ??
    recogniseNodeRedis(value) ??
    'must be a client or cluster of node-redis (createClient) or ioredis (new Redis)'
  if (typeof found === 'string') problems.push({ path, message: found })
  return found as RecognisedClient
}

export interface ClientEnvironment {
  access: Access
  warn: Warn
  clock: Clock
  random: Random
}

export function useClient(
  userClient: RecognisedClient,
  environment: ClientEnvironment,
): RedisConnection {
  const { clock, random, warn } = environment
  let problem: unknown
  userClient.onReady(() => {
    inspect(userClient, environment).then(
      () => {
        problem = undefined
      },
      (error: unknown) => {
        if (!(error instanceof RedisSetupError)) return
        problem = error
        warn(error.message, UNREACHABLE_CODE)
      },
    )
  })
  const { slotOf } = userClient
  return {
    get ready() {
      return userClient.isReady()
    },
    get problem() {
      return problem
    },
    send: userClient.send,
    kindOf,
    ...(slotOf && { slotOf }),
    subscribe: userClient.subscribe({ clock, random, denied: subscribeDenied(warn) }),
    close: async () => {},
  }
}

const NAME = 'the Redis server of redis.client'

/** Checks the server of the client, which is logged in already. In a cluster, one of its nodes. */
async function inspect({ send, cluster }: RecognisedClient, own: ClientEnvironment): Promise<void> {
  const { access, warn } = own
  const key = access.check('check')
  const info = await send(['INFO'], key).catch(() => '')
  const { problem, warning } = judge(String(info), cluster ? 'cluster' : 'server', NAME)
  if (problem !== undefined) throw problem
  if (warning !== undefined) warn(warning)
  await checkAccess((args) => send(args, key), access, key, NAME, warn)
}
