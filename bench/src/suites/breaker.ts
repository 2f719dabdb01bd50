/**
 * Cost of the circuit breaker per call, compared with breakers for one process. Both sides have the same conditions
 * and call the same function. No call fails, except in the bench of refusals.
 */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { circuitBreaker, handleAll, SamplingBreaker } from 'cockatiel'
import OpossumBreaker from 'opossum'
import { redisStore } from 'spillway/redis'
import { type CircuitBreaker, createCircuitBreaker, memoryStore, type Store } from 'spillway/shared'
import { awaitEach, type Comparison, catchEach, type Preparation, type Suite } from '../measure.js'
import { peerName } from '../peer-name.js'
import { startRedis } from '../redis-server.js'

const FAILURE_RATE = 0.5
const WINDOW_MS = 30_000
const MINIMUM_CALLS = 10
/** Longer than any bench runs. */
const OPEN_MS = 3_600_000

/** The function that every contender calls. */
const work = async () => 1

function openOurs(store: Store, { atEnd }: Preparation): CircuitBreaker {
  const breaker = createCircuitBreaker({
    name: 'vendor',
    store,
    failureRate: FAILURE_RATE,
    windowMs: WINDOW_MS,
    minimumCalls: MINIMUM_CALLS,
    openMs: OPEN_MS,
  })
  atEnd(() => breaker.close())
  return breaker
}

function createCockatiel() {
  return circuitBreaker(handleAll, {
    halfOpenAfter: OPEN_MS,
    breaker: new SamplingBreaker({
      threshold: FAILURE_RATE,
      duration: WINDOW_MS,
      // `minimumRps` is calls per second, not calls per window.
      minimumRps: MINIMUM_CALLS / (WINDOW_MS / 1_000),
    }),
  })
}

/** Without optional features of the peer: timeouts, percentiles, snapshots. */
function createOpossum({ atEnd }: Preparation) {
  const breaker = new OpossumBreaker(work, {
    errorThresholdPercentage: FAILURE_RATE * 100,
    rollingCountTimeout: WINDOW_MS,
    rollingCountBuckets: 10,
    volumeThreshold: MINIMUM_CALLS,
    resetTimeout: OPEN_MS,
    timeout: false,
    rollingPercentilesEnabled: false,
    enableSnapshots: false,
  })
  atEnd(() => breaker.shutdown())
  return breaker
}

const breakerVsCockatiel: Comparison = {
  name: 'breaker-vs-cockatiel',
  what: 'a call through a closed breaker',
  target: 1,
  peerName: peerName('cockatiel'),
  unit: 'ns/op',
  prepare(preparation) {
    const our = openOurs(memoryStore(), preparation)
    const their = createCockatiel()
    return {
      ours: awaitEach(50_000, () => our.run(work)),
      peer: awaitEach(50_000, () => their.execute(work)),
    }
  },
}

const breakerVsOpossum: Comparison = {
  name: 'breaker-vs-opossum',
  what: 'a call through a closed breaker',
  target: 1,
  peerName: peerName('opossum'),
  unit: 'ns/op',
  prepare(preparation) {
    const our = openOurs(memoryStore(), preparation)
    const their = createOpossum(preparation)
    return {
      ours: awaitEach(50_000, () => our.run(work)),
      peer: awaitEach(50_000, () => their.fire()),
    }
  },
}

const breakerOpenVsOpossum: Comparison = {
  name: 'breaker-open-vs-opossum',
  what: 'a call refused by an open breaker',
  target: 5,
  peerName: peerName('opossum'),
  unit: 'ns/op',
  async prepare(preparation) {
    const our = openOurs(memoryStore(), preparation)
    await our.trip()
    const their = createOpossum(preparation)
    their.open()
    return {
      ours: catchEach(10_000, () => our.run(work), 'CIRCUIT_OPEN'),
      peer: catchEach(10_000, () => their.fire(), 'EOPENBREAKER'),
    }
  },
}

const CALLERS = 200
const ROUND_MS = 300
/** Command timeout of the store; a busy machine must not look like an outage. */
const PATIENCE_MS = 5_000

/**
 * Starts all callers at once, then lets the event loop turn once, and repeats: otherwise no timer would fire,
 * no socket would be read, and a remote store would cost nothing. Pending reports are sent
 * within the round.
 */
async function callsPerSecond(breaker: CircuitBreaker): Promise<number> {
  const startMs = performance.now()
  let calls = 0
  while (performance.now() - startMs < ROUND_MS) {
    const answers = await Promise.all(Array.from({ length: CALLERS }, () => breaker.run(work)))
    for (const answer of answers) calls += answer
    await nextTurn()
  }
  await breaker.flush()
  return (calls * 1_000) / (performance.now() - startMs)
}

const breakerRedisVsMemory: Comparison = {
  name: 'breaker-redis-vs-memory',
  what: `a call through a closed breaker shared through Redis, ${CALLERS} callers at once`,
  target: 0.5,
  peerName: 'spillway on a memory store',
  unit: 'calls/s',
  rounds: { warmUp: 3, counted: 15 },
  async prepare(preparation) {
    const server = await startRedis()
    preparation.atEnd(() => server.stop())
    const store = redisStore({ url: server.url, commandTimeoutMs: PATIENCE_MS })
    preparation.atEnd(() => store.close())
    while (!store.ready) await sleep(1)
    const remote = openOurs(store, preparation)
    const local = openOurs(memoryStore(), preparation)
    return {
      async ours() {
        const calls = await callsPerSecond(remote)
        if (remote.snapshot().calls === 0) throw new Error('the store received no report')
        return calls
      },
      peer: () => callsPerSecond(local),
    }
  },
}

export const breaker: Suite = {
  name: 'breaker',
  what: 'cost of the circuit breaker per call, compared with other libraries',
  benches: [breakerVsCockatiel, breakerVsOpossum, breakerOpenVsOpossum, breakerRedisVsMemory],
}
