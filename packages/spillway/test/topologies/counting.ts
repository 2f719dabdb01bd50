/** Scripts that show whether a command ran twice, on connections of every library. */
import { createHash } from 'node:crypto'
import { onTestFinished, vi } from 'vitest'
import { systemClock } from '../../src/core/time/clock.js'
import type { RedisConnection } from '../../src/store/redis/connection/redis-connection.js'
import {
  createScriptRunner,
  type Script,
  type ScriptRunner,
} from '../../src/store/redis/connection/runner.js'
import type { RedisConnectionOptions } from '../../src/store/redis/redis-options.js'
import type { StoreFailure } from '../../src/store/store-failure.js'
import { connectTestRedis } from '../test-connection.js'
import { DRIVERS, type DriverName, driversToTest } from '../topologies.js'

function script(name: string, text: string): Script {
  return { name, sha: createHash('sha1').update(text).digest('hex'), text }
}

export const ADD = script('add', "return redis.call('INCR', KEYS[1])")
/** Two keys, as most scripts have. */
export const ADD_TO_BOTH = script(
  'addToBoth',
  "redis.call('INCR', KEYS[1]) return redis.call('INCR', KEYS[2])",
)

export interface Pod {
  readonly driver: DriverName
  readonly client: RedisConnection
  readonly runner: ScriptRunner
}

/** Connects one pod per library, closed after the test. */
export async function startPods(
  connection: RedisConnectionOptions,
  commandTimeoutMs = 200,
): Promise<Pod[]> {
  const pods = driversToTest().map((driver) => {
    const client = connectTestRedis({ ...connection, driver: DRIVERS[driver] })
    const runner = createScriptRunner(client, { commandTimeoutMs, clock: systemClock })
    return { driver, client, runner }
  })
  onTestFinished(async () => {
    await Promise.all(pods.map(({ runner }) => runner.close()))
  })
  await vi.waitUntil(() => pods.every(({ client }) => client.ready), { timeout: 10_000 })
  return pods
}

export interface Tally {
  /** Keys that were incremented, each by one command. */
  readonly keys: string[]
  readonly replies: unknown[]
  readonly failures: StoreFailure[]
  /**
   * Commands without an answer or a failure when three timers of their deadline's length had fired one after the other:
   * one until the command is written, one for the deadline, one for a last check. On a busy machine these timers are as
   * late as the deadline itself.
   */
  overdue: number
}

/**
 * Each pod sends command after command, each with its own key in the slot of `tag`, until it is
 * stopped. A key incremented twice was sent twice.
 */
export function keepCounting(pods: readonly Pod[], tag: string, deadlineMs: number, what = ADD) {
  const tally: Tally = { keys: [], replies: [], failures: [], overdue: 0 }
  let stopped = false
  const one = async ({ runner }: Pod) => {
    const key = `{${tag}}:${tally.keys.length}`
    tally.keys.push(key)
    const overdue = startTimers(3, deadlineMs, () => {
      tally.overdue++
    })
    await runner.run(what, what === ADD ? [key] : [key, `${key}:2`], []).then(
      (reply) => tally.replies.push(reply),
      (failure) => tally.failures.push(failure),
    )
    overdue.stop()
  }
  const lines = pods.map(async (pod) => {
    while (!stopped) {
      await Promise.all([one(pod), one(pod), one(pod)])
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
  })
  return {
    tally,
    async stop(): Promise<Tally> {
      stopped = true
      await Promise.all(lines)
      return tally
    },
  }
}

/** Waits until every pod has been answered. */
export async function untilAnswered(pods: readonly Pod[], key: string): Promise<void> {
  await Promise.all(
    pods.map(({ runner }) =>
      vi.waitUntil(() => runner.run(ADD, [key], []).catch(() => undefined), {
        timeout: 20_000,
        interval: 10,
      }),
    ),
  )
}

/** Timers one after the other; calls back when the last one has fired. */
function startTimers(count: number, ms: number, onFired: () => void): { stop(): void } {
  let left = count
  const next = (): NodeJS.Timeout =>
    setTimeout(() => {
      if (--left === 0) onFired()
      else timer = next()
    }, ms)
  let timer = next()
  return { stop: () => clearTimeout(timer) }
}
