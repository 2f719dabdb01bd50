/**
 * Cost of a decision by a shared limit, with a real Redis server on this machine. Both sides use the same server and
 * client library, with limits so high that every request is allowed; a refusal ends the bench.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { createClient } from 'redis'
import { type RedisStore, redisStore } from 'spillway/redis'
import { createSharedRateLimiter, createUserLimits, type UserLimits } from 'spillway/shared'
import { type Contender, decide, decisionsPerSecond } from '../decisions.js'
import type { Comparison, Figure, Preparation, Suite } from '../measure.js'
import { peerName } from '../peer-name.js'
import { startRedis } from '../redis-server.js'

const ROUNDS = { warmUp: 3, counted: 15 }
const CALLERS = 200
/** Command timeout of the store; a busy machine must not look like an outage. */
const PATIENCE_MS = 5_000

const VENDOR = 'vendor'
const WINDOW_MS = 60_000
/** Units per window; no machine reaches this rate. */
const VENDOR_LIMIT = 1e12
const USER_LIMIT = 1_000_000

async function startServer({ atEnd }: Preparation): Promise<string> {
  const server = await startRedis()
  atEnd(() => server.stop())
  return server.url
}

async function openStore(url: string, { atEnd }: Preparation): Promise<RedisStore> {
  const store = redisStore({ url, commandTimeoutMs: PATIENCE_MS })
  atEnd(() => store.close())
  while (!store.ready) await sleep(1)
  return store
}

async function openClient(url: string, { atEnd }: Preparation) {
  // By default node-redis creates an AbortSignal for every command, which would more than halve the speed of the
  // peer.
  const client = createClient({ url, RESP: 2, commandOptions: { timeout: 0 } })
  client.on('error', () => {})
  await client.connect()
  atEnd(() => client.destroy())
  return client
}

/** `createLimit` creates a limiter that throws above its limit, so every returned answer is a grant. */
async function openPeer(url: string, preparation: Preparation) {
  const client = await openClient(url, preparation)
  const createLimit = (keyPrefix: string, points: number) =>
    new RateLimiterRedis({
      storeClient: client,
      useRedisPackage: true,
      keyPrefix,
      points,
      duration: WINDOW_MS / 1_000,
    })
  return { createLimit, isAllowed: () => true }
}

const isAllowed = ({ allowed }: { allowed: boolean }) => allowed

/** Cycles through the keys. */
function inTurn<T>(all: readonly T[]): () => T {
  let next = 0
  return () => all[next++ % all.length]!
}

/** Calls of a vendor cost different numbers of tokens. */
const TOKEN_COSTS = Array.from({ length: 1_000 }, (_, index) => 100 + ((index * 7_919) % 3_900))

function askVendorLimits(store: RedisStore, { atEnd }: Preparation) {
  const limiter = createSharedRateLimiter({
    name: VENDOR,
    store,
    limits: [
      { unit: 'requests', limit: VENDOR_LIMIT, windowMs: WINDOW_MS },
      { unit: 'tokens', limit: VENDOR_LIMIT, windowMs: WINDOW_MS },
    ],
    jitterMs: PATIENCE_MS,
  })
  atEnd(() => limiter.close())
  const nextCost = inTurn(TOKEN_COSTS)
  return { ask: () => limiter.acquire({ cost: { tokens: nextCost() } }), isAllowed }
}

async function askPeersVendorLimits(url: string, preparation: Preparation) {
  const { createLimit, isAllowed } = await openPeer(url, preparation)
  const requests = createLimit('requests', VENDOR_LIMIT)
  const tokens = createLimit('tokens', VENDOR_LIMIT)
  const nextCost = inTurn(TOKEN_COSTS)
  return {
    ask: () => Promise.all([requests.consume(VENDOR, 1), tokens.consume(VENDOR, nextCost())]),
    isAllowed,
  }
}

function hotKey(callers: number, target: number): Comparison {
  return {
    name: `hot-key-${callers}`,
    what: `two limits of one vendor, ${callers === 1 ? 'one caller' : `${callers} callers at once`}`,
    target,
    peerName: peerName('rate-limiter-flexible'),
    unit: 'decisions/s',
    rounds: ROUNDS,
    async prepare(preparation) {
      const url = await startServer(preparation)
      const ours = askVendorLimits(await openStore(url, preparation), preparation)
      const theirs = await askPeersVendorLimits(url, preparation)
      return { ours: decisionsPerSecond(callers, ours), peer: decisionsPerSecond(callers, theirs) }
    },
  }
}

const tripsPerDecision: Figure = {
  name: `trips-per-decision-${CALLERS}`,
  what: `commands to Redis for each decision of hot-key-${CALLERS}`,
  target: { atMost: 0.05 },
  unit: 'commands/decision',
  rounds: { warmUp: 1, counted: 5 },
  async prepare(preparation) {
    const store = await openStore(await startServer(preparation), preparation)
    const ours = askVendorLimits(store, preparation)
    return async () => {
      const before = store.commands
      const decisions = await decide(CALLERS, ours)
      return (store.commands - before) / decisions
    }
  },
}

/** Creates the UUID on demand: a list of a million of them would dominate the measurement. */
function userAt(index: number): string {
  return `6f1c0c5e-93a7-4d12-8b64-${index.toString(16).padStart(12, '0')}`
}

/** Visits the users in another order than 0, 1, 2, which is their order in the server's memory. */
function usersInTurn(count: number): () => string {
  const step = 7_919
  let index = 0
  return () => {
    index = (index + step) % count
    return userAt(index)
  }
}

const userKeys: Comparison = {
  name: 'user-keys',
  what: `one limit for each of 10,000 users, ${CALLERS} callers at once`,
  target: 0.9,
  peerName: peerName('rate-limiter-flexible'),
  unit: 'decisions/s',
  rounds: ROUNDS,
  async prepare(preparation) {
    const url = await startServer(preparation)
    const nextUser = usersInTurn(10_000)
    const store = await openStore(url, preparation)
    const limits = createUserLimits({
      store,
      levels: [{ per: 'user', limit: USER_LIMIT, windowMs: WINDOW_MS }],
    })
    const ours = { ask: () => limits.check({ user: nextUser() }), isAllowed }
    const peer = await openPeer(url, preparation)
    const theirLimit = peer.createLimit('user', USER_LIMIT)
    const theirs = { ask: () => theirLimit.consume(nextUser(), 1), isAllowed: peer.isAllowed }
    return { ours: decisionsPerSecond(CALLERS, ours), peer: decisionsPerSecond(CALLERS, theirs) }
  },
}

const MANY = 1_000_000
const FEW = 1_000
/** A bucket is kept until it is full. These refill one unit in ten minutes. */
const LASTING = { limit: 100_000, windowMs: 100_000 * 600_000 }

function createLastingLimits(store: RedisStore): UserLimits {
  return createUserLimits({ store, levels: [{ per: 'user', ...LASTING }] })
}

/** Makes the first request of `count` users in parallel, because one after the other takes minutes. */
async function meet(count: number, limits: UserLimits, signal: AbortSignal): Promise<void> {
  let next = 0
  const caller = async () => {
    while (next < count) {
      signal.throwIfAborted()
      await limits.check({ user: userAt(next++) })
    }
  }
  await Promise.all(Array.from({ length: 1_000 }, caller))
}

const bytesPerUserKey: Figure = {
  name: 'bytes-per-user-key',
  what: `memory of the server for each of ${MANY.toLocaleString('en-US')} users`,
  target: { atMost: 150 },
  unit: 'bytes/user',
  rounds: { warmUp: 0, counted: 1 },
  async prepare(preparation) {
    const url = await startServer(preparation)
    const limits = createLastingLimits(await openStore(url, preparation))
    const client = await openClient(url, preparation)
    const usedMemory = async () => Number(/used_memory:(\d+)/.exec(await client.info('memory'))![1])
    // Loads the script into the server before the measurement.
    await limits.check({ user: 'first' })
    return async () => {
      const before = { bytes: await usedMemory(), keys: await client.dbSize() }
      await meet(MANY, limits, preparation.signal)
      if ((await client.dbSize()) - before.keys < MANY) throw new Error('keys are missing')
      return ((await usedMemory()) - before.bytes) / MANY
    }
  },
}

const growthUsers: Comparison = {
  name: 'growth-users',
  what: `one limit for each of ${MANY.toLocaleString('en-US')} users, and of ${FEW.toLocaleString('en-US')}`,
  target: 0.8,
  peerName: `spillway with ${FEW.toLocaleString('en-US')} users`,
  unit: 'decisions/s',
  rounds: ROUNDS,
  async prepare(preparation) {
    const open = async (count: number): Promise<Contender<{ allowed: boolean }>> => {
      const store = await openStore(await startServer(preparation), preparation)
      const limits = createLastingLimits(store)
      await meet(count, limits, preparation.signal)
      const nextUser = usersInTurn(count)
      return { ask: () => limits.check({ user: nextUser() }), isAllowed }
    }
    const [many, few] = [await open(MANY), await open(FEW)]
    return { ours: decisionsPerSecond(CALLERS, many), peer: decisionsPerSecond(CALLERS, few) }
  },
}

export const shared: Suite = {
  name: 'shared',
  what: 'cost of a decision by shared limits, with a Redis server on this machine',
  benches: [
    hotKey(CALLERS, 8),
    tripsPerDecision,
    hotKey(1, 0.85),
    userKeys,
    bytesPerUserKey,
    growthUsers,
  ],
}
