/**
 * Cost of the local mechanisms per call. Both sides get the same function and the same settings and are awaited in
 * the same loop.
 */
import {
  bulkhead as cockatielBulkhead,
  retry as cockatielRetry,
  timeout as cockatielTimeout,
  ExponentialBackoff,
  fullJitterGenerator,
  handleAll,
  TimeoutStrategy,
} from 'cockatiel'
import CircuitBreaker from 'opossum'
import type { Clock } from 'spillway'
import {
  createBulkhead,
  createPodMetrics,
  createRateLimiter,
  createRetry,
  createTimeout,
} from 'spillway/local'
import { createRandom, createVirtualClock, systemClock } from 'spillway/testing'
import {
  awaitEach,
  type Bench,
  type Comparison,
  callEach,
  catchEach,
  type Suite,
} from '../measure.js'
import { peerName } from '../peer-name.js'

const TIMEOUT_MS = 1_000
const LIMIT = 10
const QUEUE = 10
const ATTEMPTS = 3
const FIRST_DELAY_MS = 100
const LONGEST_DELAY_MS = 10_000

/** The function that every contender calls. */
const work = async () => 1

const ours = {
  timeout: () => createTimeout({ callMs: TIMEOUT_MS }),
  bulkhead: () => createBulkhead({ limit: LIMIT, queue: { size: QUEUE } }),
  retry: () =>
    createRetry({
      attempts: ATTEMPTS,
      backoff: 'exponential',
      jitter: 'full',
      baseMs: FIRST_DELAY_MS,
      maxMs: LONGEST_DELAY_MS,
    }),
}

const cockatiel = {
  timeout: () => cockatielTimeout(TIMEOUT_MS, TimeoutStrategy.Aggressive),
  bulkhead: () => cockatielBulkhead(LIMIT, QUEUE),
  retry: () =>
    cockatielRetry(handleAll, {
      // Cockatiel does not count the first attempt.
      maxAttempts: ATTEMPTS - 1,
      backoff: new ExponentialBackoff({
        generator: fullJitterGenerator,
        initialDelay: FIRST_DELAY_MS,
        maxDelay: LONGEST_DELAY_MS,
      }),
    }),
}

const timeoutVsCockatiel: Comparison = {
  name: 'timeout-vs-cockatiel',
  what: 'a call that ends in time',
  target: 10,
  peerName: peerName('cockatiel'),
  unit: 'ns/op',
  prepare() {
    const our = ours.timeout()
    const their = cockatiel.timeout()
    return {
      ours: awaitEach(10_000, () => our.run(work)),
      peer: awaitEach(10_000, () => their.execute(work)),
    }
  },
}

const bulkheadVsCockatiel: Comparison = {
  name: 'bulkhead-vs-cockatiel',
  what: 'a call that finds a free slot',
  target: 1,
  peerName: peerName('cockatiel'),
  unit: 'ns/op',
  prepare() {
    const our = ours.bulkhead()
    const their = cockatiel.bulkhead()
    return {
      ours: awaitEach(50_000, () => our.run(work)),
      peer: awaitEach(50_000, () => their.execute(work)),
    }
  },
}

const retryVsCockatiel: Comparison = {
  name: 'retry-vs-cockatiel',
  what: 'a call whose first attempt succeeds',
  target: 1,
  peerName: peerName('cockatiel'),
  unit: 'ns/op',
  prepare() {
    const our = ours.retry()
    const their = cockatiel.retry()
    return {
      ours: awaitEach(50_000, () => our.run(work)),
      peer: awaitEach(50_000, () => their.execute(work)),
    }
  },
}

const stackVsCockatiel: Comparison = {
  name: 'stack-vs-cockatiel',
  what: 'retry, bulkhead and timeout around one call',
  target: 8,
  peerName: peerName('cockatiel'),
  unit: 'ns/op',
  prepare() {
    const our = { retry: ours.retry(), bulkhead: ours.bulkhead(), timeout: ours.timeout() }
    const their = {
      retry: cockatiel.retry(),
      bulkhead: cockatiel.bulkhead(),
      timeout: cockatiel.timeout(),
    }
    // Both are nested by hand: Cockatiel's `wrap` is slower, and Spillway has no counterpart to it.
    return {
      ours: awaitEach(10_000, () =>
        our.retry.run(() => our.bulkhead.run(() => our.timeout.run(work))),
      ),
      peer: awaitEach(10_000, () =>
        their.retry.execute(() => their.bulkhead.execute(() => their.timeout.execute(work))),
      ),
    }
  },
}

const refusalVsOpossum: Comparison = {
  name: 'refusal-vs-opossum',
  what: 'a refused call: full bulkhead; peer: open circuit',
  target: 5,
  peerName: peerName('opossum'),
  unit: 'ns/op',
  prepare({ atEnd }) {
    const our = createBulkhead({ limit: 1 })
    let leave = () => {}
    our.run(() => new Promise<void>((resolve) => (leave = resolve)))
    const their = new CircuitBreaker(work, { resetTimeout: 3_600_000 })
    their.open()
    atEnd(() => {
      leave()
      their.shutdown()
    })
    return {
      ours: catchEach(10_000, () => our.run(work), 'QUEUE_FULL'),
      peer: catchEach(10_000, () => their.fire(), 'EOPENBREAKER'),
    }
  },
}

const WINDOW_MS = 10_000
const RECORDS = 1_000_000
/** Ten snapshots per second of this clock. */
const RECORDS_PER_SNAPSHOT = 10_000

/** Advances a little with every reading, so that the records fill the window evenly. */
function createBusyClock(): Clock {
  // A property, which V8 updates in place. A variable would be boxed again at each change.
  const time = { nowMs: WINDOW_MS }
  const stepMs = WINDOW_MS / RECORDS
  return {
    ...systemClock,
    now() {
      time.nowMs += stepMs
      return time.nowMs
    },
  }
}

/** The peer keeps every record of the window, so it slows down with the number of records. */
function growth(name: string, what: string, create: () => () => number): Comparison {
  return {
    name,
    what: `${what}, with ${RECORDS.toLocaleString('en-US')} records and with none`,
    target: 0.8,
    peerName: 'spillway when fresh',
    unit: 'ns/op',
    prepare() {
      const old = create()
      for (let i = 0; i < RECORDS; i++) old()
      return { ours: callEach(20_000, old), peer: () => callEach(20_000, create())() }
    },
  }
}

const growthMetrics = growth('growth-metrics', 'recording a call in the metrics', () => {
  const metrics = createPodMetrics({ windowMs: WINDOW_MS, clock: createBusyClock() })
  let calls = 0
  return () => {
    calls++
    metrics.record(calls % 500, calls % 20 === 0 ? 'failure' : 'success')
    return calls % RECORDS_PER_SNAPSHOT === 0 ? Math.sign(metrics.snapshot().calls) : 1
  }
})

const growthLimiter = growth('growth-limiter', 'a grant of the sliding-window limiter', () => {
  const limiter = createRateLimiter({
    algorithm: 'sliding-window',
    limit: 2 * RECORDS,
    windowMs: WINDOW_MS,
    clock: createBusyClock(),
  })
  return () => (limiter.tryAcquire() ? 1 : 0)
})

const SLEEPERS = 1_000
const SLEEPS = 50

const virtualEventsPerSecond: Bench = {
  name: 'virtual-events-per-second',
  what: `timers of the virtual clock, with ${SLEEPERS.toLocaleString('en-US')} sleepers at once`,
  target: { atLeast: 100_000 },
  unit: 'events/s',
  prepare: () => async () => {
    const clock = createVirtualClock()
    const random = createRandom(1)
    const sleeper = async () => {
      for (let i = 0; i < SLEEPS; i++) {
        await new Promise<void>((resolve) => clock.schedule(random() * 1_000, resolve))
      }
    }
    const startMs = performance.now()
    await clock.until(Promise.all(Array.from({ length: SLEEPERS }, sleeper)))
    return (clock.fired * 1_000) / (performance.now() - startMs)
  },
}

export const local: Suite = {
  name: 'local',
  what: 'cost of the local mechanisms per call, compared with other libraries',
  benches: [
    timeoutVsCockatiel,
    bulkheadVsCockatiel,
    retryVsCockatiel,
    stackVsCockatiel,
    refusalVsOpossum,
    growthMetrics,
    growthLimiter,
    virtualEventsPerSecond,
  ],
}
