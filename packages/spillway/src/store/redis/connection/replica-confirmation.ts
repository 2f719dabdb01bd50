/**
 * A connection for writes that replicas have to confirm. While a connection waits for replicas
 * (WAIT), the server processes nothing else on it. So this is a separate connection, opened when
 * first needed.
 */
import type { Clock } from '../../../core/time/clock.js'
import { sleep } from '../../../core/time/sleep.js'
import { StoreFailure } from '../../store-failure.js'
import { within } from '../topology/within.js'
import type { RedisConnection } from './redis-connection.js'
import { createScriptRunner, type ScriptRunner } from './runner.js'

export interface ReplicaConfirmation {
  readonly runner: ScriptRunner
  /** Returns how many replicas have everything that was written over this connection. */
  confirm(key: string, replicas: number, timeoutMs: number): Promise<number>
}

export interface ReplicaConfirmationOptions {
  connect: () => RedisConnection
  commandTimeoutMs: number
  clock: Clock
}

/** Longest time to open the connection. */
const CONNECT_MS = 2_000
const CHECK_MS = 5
/** Time for the reply to travel. */
const MARGIN_MS = 100

export function createReplicaConfirmation({
  connect,
  commandTimeoutMs,
  clock,
}: ReplicaConfirmationOptions) {
  let made: { client: RedisConnection; runner: ScriptRunner } | undefined
  return {
    async open(): Promise<ReplicaConfirmation> {
      if (made === undefined) {
        const client = connect()
        made = { client, runner: createScriptRunner(client, { commandTimeoutMs, clock }) }
      }
      const { client, runner } = made
      const lastMs = clock.now() + CONNECT_MS
      while (!client.ready && clock.now() < lastMs) await sleep(clock, CHECK_MS)
      return {
        runner,
        async confirm(key, replicas, timeoutMs) {
          const command = ['WAIT', String(replicas), String(timeoutMs)]
          try {
            return (await within(timeoutMs + MARGIN_MS, clock, client.send(command, key))) as number
          } catch (cause) {
            throw new StoreFailure('ambiguous', `WAIT: ${String(cause)}`, cause)
          }
        },
      }
    },
    close: async () => made?.runner.close(),
  }
}
