/** The store of a gateway and of commands that operate it. */
import type { Clock } from 'spillway'
import { systemClock } from 'spillway/internal'
import { type RedisStore, type RedisStoreOptions, redisStore } from 'spillway/redis'

const CONNECT_MS = 2_000
const CHECK_MS = 10

export function openStore(options: RedisStoreOptions): RedisStore {
  return redisStore(options)
}

/** Waits until the store is connected or has failed, for 2 seconds at most. True: it is connected. */
export async function reachesStore(
  store: Pick<RedisStore, 'ready' | 'problem'>,
  clock: Clock = systemClock,
): Promise<boolean> {
  const lastMs = clock.now() + CONNECT_MS
  while (!store.ready && store.problem === undefined && clock.now() < lastMs) {
    await new Promise<void>((resolve) => clock.schedule(CHECK_MS, resolve).unref())
  }
  return store.ready
}
