/**
 * What a guard with all its stages on costs a call, beside libraries that have some of them. Both
 * sides of a comparison have the same conditions where both have one, and call the same function;
 * nothing fails, but for the benches of refusals. On a memory store, unless Redis is mentioned.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import {
  bulkhead,
  circuitBreaker,
  ExponentialBackoff,
  fullJitterGenerator,
  handleAll,
  type ICancellationContext,
  retry,
  SamplingBreaker,
  TimeoutStrategy,
  timeout,
  wrap,
} from 'cockatiel'
import OpossumBreaker from 'opossum'
import PQueue from 'p-queue'
import type { Guard } from 'spillway'
import { type RedisStore, redisStore } from 'spillway/redis'
import {
  ALL_STAGES,
  AN_HOUR_MS,
  ATTEMPTS,
  BREAKER_WINDOW_MS,
  callOptions,
  FAILURE_RATE,
  FIRST_DELAY_MS,
  LONGEST_DELAY_MS,
  MINIMUM_CALLS,
  openGuard,
  PLACES,
  SLOTS,
  TIMEOUT_MS,
} from '../all-stages.js'
import { decide } from '../decisions.js'
import {
  awaitEach,
  type Comparison,
  catchEach,
  type Figure,
  type Preparation,
  perSecond,
  type Round,
  type Suite,
} from '../measure.js'
import { peerName } from '../peer-name.js'
import { startRedis } from '../redis-server.js'

/** What every contender calls. */
const work = async () => 1

/** The same for one that wants to know when to stop, as `fetch` does. */
const heedful = async ({ signal }: Pick<ICancellationContext, 'signal'>) => (signal.aborted ? 0 : 1)

/** All that it has of the same: breaker, timeout, slots. Without percentiles and snapshots. */
function openOpossum({ atEnd }: Preparation) {
  const breaker = new OpossumBreaker(work, {
    errorThresholdPercentage: FAILURE_RATE * 100,
    rollingCountTimeout: BREAKER_WINDOW_MS,
    rollingCountBuckets: 10,
    volumeThreshold: MINIMUM_CALLS,
    resetTimeout: AN_HOUR_MS,
    timeout: TIMEOUT_MS,
    capacity: SLOTS,
    rollingPercentilesEnabled: false,
    enableSnapshots: false,
  })
  atEnd(() => breaker.shutdown())
  return breaker
}

function createCockatiel() {
  return wrap(
    retry(handleAll, {
      // Cockatiel does not count the first attempt.
      maxAttempts: ATTEMPTS - 1,
      backoff: new ExponentialBackoff({
        generator: fullJitterGenerator,
        initialDelay: FIRST_DELAY_MS,
        maxDelay: LONGEST_DELAY_MS,
      }),
    }),
    circuitBreaker(handleAll, {
      halfOpenAfter: AN_HOUR_MS,
      breaker: new SamplingBreaker({
        threshold: FAILURE_RATE,
        duration: BREAKER_WINDOW_MS,
        // Calls a second, not in the window.
        minimumRps: MINIMUM_CALLS / (BREAKER_WINDOW_MS / 1_000),
      }),
    }),
    bulkhead(SLOTS, PLACES),
    timeout(TIMEOUT_MS, TimeoutStrategy.Aggressive),
  )
}

const guardVsOpossum: Comparison = {
  name: 'guard-vs-opossum',
  what: 'a call through all ten stages; theirs: breaker, timeout, capacity',
  target: 1,
  peerName: peerName('opossum'),
  unit: 'calls/s',
  prepare(preparation) {
    const our = openGuard(preparation)
    const their = openOpossum(preparation)
    return {
      ours: perSecond(awaitEach(20_000, () => our.run(work, callOptions()))),
      peer: perSecond(awaitEach(20_000, () => their.fire())),
    }
  },
}

const guardVsCockatiel: Comparison = {
  name: 'guard-vs-cockatiel',
  what: 'a call through all ten stages; theirs: retry, breaker, bulkhead, timeout',
  target: 8,
  peerName: peerName('cockatiel'),
  unit: 'calls/s',
  prepare(preparation) {
    const our = openGuard(preparation)
    const their = createCockatiel()
    return {
      ours: perSecond(awaitEach(10_000, () => our.run(work, callOptions()))),
      peer: perSecond(awaitEach(10_000, () => their.execute(work))),
    }
  },
}

const guardSignalVsCockatiel: Comparison = {
  name: 'guard-signal-vs-cockatiel',
  what: 'the same, with a call that looks at its signal',
  target: 2,
  peerName: peerName('cockatiel'),
  unit: 'calls/s',
  prepare(preparation) {
    const our = openGuard(preparation)
    const their = createCockatiel()
    return {
      ours: perSecond(awaitEach(10_000, () => our.run(heedful, callOptions()))),
      peer: perSecond(awaitEach(10_000, () => their.execute(heedful))),
    }
  },
}

/** Ours refuses for its reason, theirs because its circuit is open. */
function refusal(
  stage: string,
  code: string,
  what: string,
  prepareGuard: (preparation: Preparation) => Promise<Guard>,
): Comparison {
  return {
    name: `refusal-${stage}`,
    what: `a call refused: ${what}; theirs: an open circuit`,
    target: 5,
    peerName: peerName('opossum'),
    unit: 'ns/op',
    async prepare(preparation) {
      const our = await prepareGuard(preparation)
      const their = openOpossum(preparation)
      their.open()
      return {
        ours: catchEach(10_000, () => our.run(work, callOptions()), code),
        peer: catchEach(10_000, () => their.fire(), 'EOPENBREAKER'),
      }
    },
  }
}

const never = () => new Promise<never>(() => {})
const ignore = () => {}

const refusalShed = refusal('shed', 'SHED', 'enough of them wait', async (preparation) => {
  const guard = openGuard(preparation, {
    options: {
      shed: { maxQueue: 1 },
      queue: { size: PLACES, timeoutMs: AN_HOUR_MS },
      concurrency: { limit: 1 },
      timeout: { callMs: AN_HOUR_MS },
    },
  })
  // One that runs for ever, and one that waits for it.
  for (let i = 0; i < 2; i++) guard.run(never, callOptions()).catch(ignore)
  return guard
})

const refusalBreaker = refusal('breaker', 'CIRCUIT_OPEN', 'the breaker is open', async (at) => {
  const guard = openGuard(at)
  const fail = () => Promise.reject(new Error('down'))
  for (let i = 0; i < MINIMUM_CALLS; i++) {
    await guard.run(fail, { ...callOptions(), idempotent: false }).catch(ignore)
  }
  return guard
})

const refusalLimit = refusal('limit', 'VENDOR_LIMITED', 'the limit is used up', async (at) => {
  const [requests, tokens] = ALL_STAGES.limits
  const limits = [{ ...requests, limit: 1, windowMs: AN_HOUR_MS }, tokens]
  const guard = openGuard(at, { options: { limits } })
  await guard.run(work, callOptions())
  // The first one has to find out.
  await guard.run(work, { ...callOptions(), timeoutMs: 1 }).catch(ignore)
  return guard
})

const MANY = 10_000
const FEW = 100

/** A room for very many, and nobody is let go for waiting too long. */
function openRoom(preparation: Preparation): Guard {
  return openGuard(preparation, {
    options: {
      shed: { maxQueue: 2 * MANY },
      queue: { size: 2 * MANY, timeoutMs: AN_HOUR_MS },
    },
  })
}

/** So many calls wait at once, for slots that come free as soon as a call has begun. */
function drain(waiting: number, run: () => Promise<number>, length: () => number): Round {
  return async () => {
    const startMs = performance.now()
    const answers: Promise<number>[] = []
    for (let i = 0; i < waiting + SLOTS; i++) answers.push(run())
    if (length() !== waiting) throw new Error(`${length()} calls wait instead of ${waiting}`)
    let done = 0
    for (const answer of await Promise.all(answers)) done += answer
    return (done * 1_000) / (performance.now() - startMs)
  }
}

const roomVsPQueue: Comparison = {
  name: 'room-vs-p-queue',
  what: `${MANY.toLocaleString('en-US')} waiting calls, ${SLOTS} at once; ours pass all ten stages`,
  target: 1,
  peerName: peerName('p-queue'),
  unit: 'calls/s',
  prepare(preparation) {
    const our = openRoom(preparation)
    const their = new PQueue({ concurrency: SLOTS })
    return {
      ours: drain(
        MANY,
        () => our.run(work, callOptions()),
        () => our.snapshot().room.waiting,
      ),
      peer: drain(
        MANY,
        () => their.add(work),
        () => their.size,
      ),
    }
  },
}

const CALLS_A_ROUND = 50_000

/** As many callers as there are slots and places taken; each calls again when it has its answer. */
function standing(waiting: number, run: () => Promise<number>): Round {
  return async () => {
    const startMs = performance.now()
    let [asked, done] = [0, 0]
    const caller = async () => {
      while (asked < CALLS_A_ROUND) {
        asked++
        const answer = await run()
        done += answer
      }
    }
    await Promise.all(Array.from({ length: waiting + SLOTS }, caller))
    if (done !== asked) throw new Error(`${asked - done} of ${asked} calls did not do their work`)
    return ((performance.now() - startMs) * 1e6) / done
  }
}

const growthRoom: Comparison = {
  name: 'growth-room',
  what: `a call through a room with ${MANY.toLocaleString('en-US')} waiting, and with ${FEW}`,
  target: 0.8,
  peerName: `spillway with ${FEW} waiting`,
  unit: 'ns/op',
  prepare(preparation) {
    const open = () => {
      const guard = openRoom(preparation)
      return () => guard.run(work, callOptions())
    }
    return { ours: standing(MANY, open()), peer: standing(FEW, open()) }
  },
}

/** So many others wait, of a lower priority, and stay, while as many callers as slots pass them. */
function pass(others: number, guard: Guard): Round {
  const passing = standing(SLOTS, () => guard.run(work, { ...callOptions(), priority: 'high' }))
  return async () => {
    let begin = () => {}
    const begun = new Promise<number>((resolve) => {
      begin = () => resolve(1)
    })
    const answers: Promise<number>[] = []
    for (let i = 0; i < SLOTS; i++) answers.push(guard.run(() => begun, callOptions()))
    for (let i = 0; i < others; i++) {
      answers.push(guard.run(work, { ...callOptions(), priority: 'low' }))
    }
    const { waiting } = guard.snapshot().room
    if (waiting !== others) throw new Error(`${waiting} calls wait instead of ${others}`)
    const result = passing()
    begin()
    const ns = await result
    await Promise.all(answers)
    return ns
  }
}

const growthRoomOthers: Comparison = {
  name: 'growth-room-others',
  what: `a call that waits for a slot and passes ${MANY.toLocaleString('en-US')} others, and ${FEW}`,
  target: 0.8,
  peerName: `spillway with ${FEW} others`,
  unit: 'ns/op',
  prepare(preparation) {
    return {
      ours: pass(MANY, openRoom(preparation)),
      peer: pass(FEW, openRoom(preparation)),
    }
  },
}

/**
 * The least that can wait: a promise and a place in a list, and no stage at all. What it loses with
 * its length it loses to collecting memory that all waits for long; nobody who keeps more loses less.
 */
class BareLine {
  #free = SLOTS
  #first: Waiting | undefined
  #last: Waiting | undefined

  run(fn: () => Promise<number>): Promise<number> {
    if (this.#free > 0) {
      this.#free--
      return this.#begin(fn)
    }
    return new Promise((resolve) => {
      const waiting: Waiting = { fn, resolve, next: undefined }
      if (this.#last === undefined) this.#first = waiting
      else this.#last.next = waiting
      this.#last = waiting
    })
  }

  #begin(fn: () => Promise<number>): Promise<number> {
    return fn().then((value) => {
      this.#end()
      return value
    })
  }

  #end(): void {
    const next = this.#first
    if (next === undefined) {
      this.#free++
      return
    }
    this.#first = next.next
    if (this.#first === undefined) this.#last = undefined
    next.resolve(this.#begin(next.fn))
  }
}

interface Waiting {
  fn: () => Promise<number>
  resolve: (value: Promise<number>) => void
  next: Waiting | undefined
}

const growthBareLine: Figure = {
  name: 'growth-bare-line',
  what: 'the same ratio for a line of promises and nothing else: a bound for growth-room',
  unit: '',
  prepare() {
    const open = () => {
      const line = new BareLine()
      return () => line.run(work)
    }
    const [many, few] = [standing(MANY, open()), standing(FEW, open())]
    return async () => (await few()) / (await many())
  },
}

const guardOverBare: Figure = {
  name: 'guard-over-bare',
  what: 'what all ten stages add to a call that is awaited',
  unit: 'ns/call',
  prepare(preparation) {
    const guard = openGuard(preparation)
    const guarded = awaitEach(20_000, () => guard.run(work, callOptions()))
    const bare = awaitEach(20_000, () => work())
    return async () => (await guarded()) - (await bare())
  },
}

/** Few enough not to fill the young generation, which would be collected in between. */
const CALLS_BETWEEN_COLLECTIONS = 200

const bytesPerCall: Figure = {
  name: 'bytes-per-call',
  what: 'memory a call through all ten stages allocates, its options included',
  unit: 'bytes/call',
  async prepare(preparation) {
    const guard = openGuard(preparation)
    // Until all of it is optimised: what is optimised allocates less.
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

/** A machine that is busy with something else has not lost its store. */
const PATIENCE_MS = 5_000

async function openStore({ atEnd }: Preparation): Promise<RedisStore> {
  const server = await startRedis()
  atEnd(() => server.stop())
  const store = redisStore({ url: server.url, commandTimeoutMs: PATIENCE_MS })
  atEnd(() => store.close())
  while (!store.ready) await sleep(1)
  return store
}

/** As long as a breaker knows of 100 calls at most, it is told of each at once: a trip more for each. */
const FIRST_CALLS = 200

function commandsPerCall(callers: number, atMost: number): Figure {
  const who = callers === 1 ? 'one caller' : `${callers} callers at once`
  return {
    name: `commands-per-call-${callers}`,
    what: `commands to Redis for each call through all ten stages, ${who}`,
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

export const guard: Suite = {
  name: 'guard',
  what: 'what all ten stages cost a call, beside libraries that have some of them',
  benches: [
    guardVsOpossum,
    guardVsCockatiel,
    guardSignalVsCockatiel,
    refusalShed,
    refusalBreaker,
    refusalLimit,
    roomVsPQueue,
    growthRoom,
    growthRoomOthers,
    growthBareLine,
    guardOverBare,
    bytesPerCall,
    commandsPerCall(200, 0.1),
    commandsPerCall(1, 2),
  ],
}
