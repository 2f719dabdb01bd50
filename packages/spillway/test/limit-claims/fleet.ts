/** Setup of the limit claims with Redis: pods that share a store, and real time. */

import { type RedisStore, redisStore } from 'spillway/redis'
import {
  type Acquisition,
  createSharedRateLimiter,
  type Permit,
  type SharedRateLimiter,
  type SharedRateLimiterOptions,
  type Store,
} from 'spillway/shared'
import { sleep, systemClock } from 'spillway/testing'
import { vi } from 'vitest'
import { onTestFinished } from '../concurrent-tests.js'
import {
  DRIVERS,
  driversToTest,
  type Servers,
  TOPOLOGIES,
  type TopologyName,
} from '../topologies.js'
import { complain, type Fleet } from './memory-fleet.js'

export type { Fleet }

/** Never ends within a test. */
export const LONG_MS = 3_600_000
/** Round trips longer than this fail a test; windows are longer by this much. */
export const JITTER_MS = 10_000

/** Ends a test whose answer never comes. */
const ANSWER_MS = 60_000

/** Each pod uses another client library, unless the environment names one. */
export function createRedisFleet(
  topology: TopologyName = 'one server',
  begin: () => Promise<Servers> = TOPOLOGIES[topology],
): Fleet {
  let servers: Servers
  let stores: RedisStore[] = []
  let pods = 0
  return {
    kind: 'redis',
    name: `Redis (${topology}, ${driversToTest().join(', ')})`,
    clock: systemClock,
    async start() {
      servers = await begin()
      stores = [0, 1, 2].map((pod) => {
        const names = driversToTest()
        const driver = DRIVERS[names[pod % names.length]!]
        return redisStore({ ...servers.connection, driver, commandTimeoutMs: 5_000 })
      })
      await vi.waitUntil(() => stores.every(({ ready }) => ready), { timeout: 10_000 })
      // A subscriber exists all the time, because subscribing takes longer than breakers in tests are open.
      await Promise.all(stores.map(listen))
    },
    async stop() {
      await Promise.all(stores.map((store) => store.close()))
      await servers.stop()
    },
    store: () => stores[pods++ % stores.length] as RedisStore,
    sleep: (ms) => sleep(systemClock, ms),
    until: (promise) => promise,
    answered: (promise) => Promise.race([promise, sleep(systemClock, ANSWER_MS).then(complain)]),
    send: (...command) => servers.send(...command),
    everywhere: (...command) => servers.everywhere(...command),
  }
}

/** Listens until the store is closed. */
function listen(store: RedisStore): Promise<void> {
  return new Promise((onGap) => {
    store.breakers.watch({ onView() {}, onGap })
  })
}

/** A store whose replies to some permit requests are delayed. */
export function slowStore(fleet: Fleet, delaysMs: number[]): Store {
  const store = fleet.store()
  const { limits } = store
  const slow: Store['limits'] = {
    ...limits,
    async take(request) {
      const reply = await limits.take(request)
      const delayMs = delaysMs.shift() ?? 0
      if (delayMs > 0) await sleep(fleet.clock, delayMs)
      return reply
    },
  }
  return { ...store, limits: slow }
}

type VendorOptions = Omit<SharedRateLimiterOptions, 'store' | 'name'> &
  Partial<Pick<SharedRateLimiterOptions, 'store' | 'name'>>

let vendors = 0

/** A vendor without calls. Each call of the returned function creates one more pod. */
export function createVendor(fleet: Fleet, options: VendorOptions) {
  const name = `vendor-${++vendors}`
  return (own: Partial<VendorOptions> = {}): SharedRateLimiter => {
    const { clock } = fleet
    const store = own.store ?? fleet.store()
    const pod = createSharedRateLimiter({
      name,
      jitterMs: JITTER_MS,
      clock,
      ...options,
      ...own,
      store,
    })
    onTestFinished(() => pod.close())
    return pod
  }
}

/** `count` pods make one request each at the same time. */
export function askTogether(
  pod: () => SharedRateLimiter,
  pods: number,
  ...options: Parameters<SharedRateLimiter['acquire']>
): Promise<Acquisition[]> {
  return Promise.all(Array.from({ length: pods }, () => pod().acquire(...options)))
}

/** The number of concurrent requests that are granted. */
export async function passing(...args: Parameters<typeof askTogether>): Promise<number> {
  return (await askTogether(...args)).filter(({ allowed }) => allowed).length
}

export function permitOf(acquisition: Acquisition): Permit {
  if (!acquisition.allowed) throw new Error(`refused: ${JSON.stringify(acquisition)}`)
  return acquisition.permit
}

/** Takes a permit that has to be available. */
export async function take(
  pod: SharedRateLimiter,
  ...options: Parameters<SharedRateLimiter['acquire']>
): Promise<Permit> {
  return permitOf(await pod.acquire(...options))
}

/** Whether the promise is still pending a moment from now. */
export async function isWaiting(fleet: Fleet, promise: Promise<unknown>): Promise<boolean> {
  let waiting = true
  const note = () => {
    waiting = false
  }
  promise.then(note, note)
  await fleet.sleep(30)
  return waiting
}

/** The time of the grant in milliseconds of the store's clock. */
export function grantedMs(permit: Permit): number {
  return (permit as Permit & { grantedUs: number }).grantedUs / 1_000
}

/** Units used of each limit by id, as seen by a new pod. */
export async function usedOf(
  pod: () => SharedRateLimiter,
  ...options: Parameters<SharedRateLimiter['figures']>
): Promise<Record<string, number>> {
  const { limits } = await pod().figures(...options)
  return Object.fromEntries(limits.map(({ id, used }) => [id, used]))
}
