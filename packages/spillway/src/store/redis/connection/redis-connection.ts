/** The way to the store, whatever stands at its end. */
import type { RedisClient } from './runner.js'
import type { Subscribe } from './subscription.js'

export interface RedisConnection extends RedisClient {
  /** Takes a connection of its own, which does not keep the process alive, until it is closed. */
  readonly subscribe: Subscribe
}
