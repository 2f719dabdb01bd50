/** Cost of the guard itself: time, memory and round trips to Redis. */
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type RedisStore, redisStore } from 'spillway/redis'
import { callOptions, openGuard } from '../all-stages.js'
import { decide } from '../decisions.js'
import { awaitEach, type Figure, type Preparation } from '../measure.js'
import { startRedis } from '../redis-server.js'
import { work } from './contenders.js'

export const guardOverBare: Figure = {
  name: 'guard-over-bare',
  what: 'additional time of a call through nine stages',
  unit: 'ns/call',
  prepare(preparation) {
    const guard = openGuard(preparation)
    const guarded = awaitEach(20_000, () => guard.run(work, callOptions()))
    const bare = awaitEach(20_000, () => work())
    return async () => (await guarded()) - (await bare())
  },
}

/** Few enough calls that V8 does not collect the young generation during the measurement. */
const CALLS_BETWEEN_COLLECTIONS = 200

export const bytesPerCall: Figure = {
  name: 'bytes-per-call',
  what: 'allocated memory of a call through nine stages, including its options',
  unit: 'bytes/call',
  async prepare(preparation) {
    const guard = openGuard(preparation)
    // Warms up until all code is optimised, because optimised code allocates less.
    await awaitEach(100_000, () => guard.run(work, callOptions()))()
    setFlagsFromString('--expose-gc')
    const collectGarbage: () => void = runInNewContext('gc')
    return async () => {
      collectGarbage()
      const before = process.memoryUsage().heapUsed
      for (let i = 0; i < CALLS_BETWEEN_COLLECTIONS; i++) await guard.run(work, callOptions())
      return (process.memoryUsage().heapUsed - before) / CALLS_BETWEEN_COLLECTIONS
    }
  },
}

/** Command timeout of the store; a busy machine must not look like an outage. */
const PATIENCE_MS = 5_000

async function openStore({ atEnd }: Preparation): Promise<RedisStore> {
  const server = await startRedis()
  atEnd(() => server.stop())
  const store = redisStore({ url: server.url, commandTimeoutMs: PATIENCE_MS })
  atEnd(() => store.close())
  while (!store.ready) await sleep(1)
  return store
}

/** A breaker reports each of its first 100 calls at once, which costs a round trip each. */
const FIRST_CALLS = 200

export function commandsPerCall(callers: number, atMost: number): Figure {
  const who = callers === 1 ? 'one caller' : `${callers} callers at once`
  return {
    name: `commands-per-call-${callers}`,
    what: `commands to Redis for each call through nine stages, ${who}`,
    target: { atMost },
    unit: 'commands/call',
    rounds: { warmUp: 1, counted: 5 },
    async prepare(preparation) {
      const store = await openStore(preparation)
      const options = { concurrency: { limit: callers }, jitterMs: PATIENCE_MS }
      const guard = openGuard(preparation, { store, options })
      const ask = () => guard.run(work, callOptions())
      for (let call = 0; call < FIRST_CALLS; call++) await ask()
      return async () => {
        const before = store.commands
        const calls = await decide(callers, { ask, isAllowed: (answer) => answer === 1 })
        return (store.commands - before) / calls
      }
    },
  }
}
