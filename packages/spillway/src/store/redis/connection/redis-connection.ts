/** A connection to one server, to Sentinels or to a cluster. */
import type { RedisClient } from './runner.js'
import type { Subscribe } from './subscription.js'

export interface RedisConnection extends RedisClient {
  /** Opens a separate connection, which does not keep the process alive, until it is closed. */
  readonly subscribe: Subscribe
}
