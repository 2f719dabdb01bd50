/**
 * A connection for what has to be confirmed by replicas. The server holds back everything else that
 * comes over a connection that waits for them, so it is one of its own, made when first needed.
 */
import type { Clock } from '../../../core/time/clock.js'
import { sleep } from '../../../core/time/sleep.js'
import { StoreFailure } from '../../store-failure.js'
import { within } from '../topology/within.js'
import type { RedisConnection } from './redis-connection.js'
import { createScriptRunner, type ScriptRunner } from './runner.js'

export interface Confirming {
  readonly runner: ScriptRunner
  /** Answers with how many replicas have all that was written over this connection. */
  confirm(key: string, replicas: number, timeoutMs: number): Promise<number>
}

export interface ConfirmingOptions {
  connect: () => RedisConnection
  commandTimeoutMs: number
  clock: Clock
}

/** So long a new connection may take. */
const CONNECT_MS = 2_000
const LOOK_MS = 5
/** Replies travel, too. */
const MARGIN_MS = 100

export function createConfirming({ connect, commandTimeoutMs, clock }: ConfirmingOptions) {
  let made: { client: RedisConnection; runner: ScriptRunner } | undefined
  return {
    async open(): Promise<Confirming> {
      if (made === undefined) {
        const client = connect()
        made = { client, runner: createScriptRunner(client, { commandTimeoutMs, clock }) }
      }
      const { client, runner } = made
      const lastMs = clock.now() + CONNECT_MS
      while (!client.ready && clock.now() < lastMs) await sleep(clock, LOOK_MS)
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
