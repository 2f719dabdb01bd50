/** Scripts that show whether a command ran twice, on connections of every library. */
import { createHash } from 'node:crypto'
import { onTestFinished, vi } from 'vitest'
import { systemClock } from '../../src/core/clock.js'
import type { RedisConnection } from '../../src/store/redis/redis-connection.js'
import type { RedisConnectionOptions } from '../../src/store/redis/redis-options.js'
import { createScriptRunner, type Script, type ScriptRunner } from '../../src/store/redis/runner.js'
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
  /** The longest wait for a reply of any kind. */
  longestMs: number
  /** The longest time this process was blocked, which is long on a busy machine. */
  stalledMs: number
}

/**
 * A deadline can be noticed late by up to three blocked periods: at its start, at its end and once
 * more.
 */
export function latestMs(deadlineMs: number, { stalledMs }: Tally): number {
  return deadlineMs + 3 * stalledMs + 50
}

/**
 * Each pod sends command after command, each with its own key in the slot of `tag`, until it is
 * stopped. A key incremented twice was sent twice.
 */
export function keepCounting(pods: readonly Pod[], tag: string, what = ADD) {
  const tally: Tally = { keys: [], replies: [], failures: [], longestMs: 0, stalledMs: 0 }
  let stopped = false
  const one = async ({ runner }: Pod) => {
    const key = `{${tag}}:${tally.keys.length}`
    tally.keys.push(key)
    const startMs = performance.now()
    await runner.run(what, what === ADD ? [key] : [key, `${key}:2`], []).then(
      (reply) => tally.replies.push(reply),
      (failure) => tally.failures.push(failure),
    )
    tally.longestMs = Math.max(tally.longestMs, performance.now() - startMs)
  }
  const lines = pods.map(async (pod) => {
    while (!stopped) {
      await Promise.all([one(pod), one(pod), one(pod)])
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
  })
  let lookedMs = performance.now()
  const looking = setInterval(() => {
    const now = performance.now()
    tally.stalledMs = Math.max(tally.stalledMs, now - lookedMs)
    lookedMs = now
  }, 1)
  onTestFinished(() => clearInterval(looking))
  return {
    tally,
    async stop(): Promise<Tally> {
      stopped = true
      await Promise.all(lines)
      return tally
    },
  }
}

/** Waits until every pod has received a reply and returns how long that took. */
export async function untilAnswered(pods: readonly Pod[], key: string): Promise<number> {
  const startMs = performance.now()
  await Promise.all(
    pods.map(({ runner }) =>
      vi.waitUntil(() => runner.run(ADD, [key], []).catch(() => undefined), {
        timeout: 20_000,
        interval: 10,
      }),
    ),
  )
  return performance.now() - startMs
}
