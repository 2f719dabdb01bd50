/**
 * A downstream handles 10 requests at once, 50 ms each: 200 per second. For 3 s the caller gets 400 requests per second.
 * Each has to be answered within 500 ms. All packages limit the calls to 10 at once. The results are the answers in time
 * per second, counted from second 1 to second 3, and the time until a refusal.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { bulkhead } from 'cockatiel'
import CircuitBreaker from 'opossum'
import pLimit from 'p-limit'
import PQueue from 'p-queue'
import { createSpillway } from 'spillway'
import { startVendor } from '../parts/vendor.mjs'

const SLOTS = 10
const WORK_MS = 50
const PER_SECOND = 400
const SECONDS = 3
const DEADLINE_MS = 500
/** A wait of 100 ms at most. */
const QUEUE = 20
const ROUNDS = 3

/** Each returns a function that makes one call; `signal` is aborted at the caller's deadline. */
const LIMITERS = {
  // docs/how-to/guard.md: a queue, and the deadline of each call.
  'Spillway, queue': (call) => spillwayCall(call, {}),
  // docs/how-to/mechanisms/load-shedding.md: refuses at once what cannot end before its deadline.
  'Spillway, queue and shed.inTime': (call) => spillwayCall(call, { shed: { inTime: true } }),
  // https://github.com/sindresorhus/p-limit#usage: it has no way to leave the queue.
  'p-limit': (call) => {
    const limit = pLimit(SLOTS)
    return (signal) => limit(() => call(signal))
  },
  // https://github.com/sindresorhus/p-queue#signal
  'p-queue, signal': (call) => {
    const queue = new PQueue({ concurrency: SLOTS })
    return (signal) => queue.add(() => call(signal), { signal })
  },
  // https://nodeshift.dev/opossum/: `capacity`. At 10 calls at once it refuses; it has no queue.
  'opossum, capacity': (call) => {
    const breaker = new CircuitBreaker(call, {
      capacity: SLOTS,
      timeout: DEADLINE_MS,
      errorThresholdPercentage: 50,
      resetTimeout: 30_000,
      // Refusals by capacity count as failures, and would open the breaker.
      errorFilter: ({ code }) => code === 'ESEMLOCKED',
    })
    return (signal) => breaker.fire(signal)
  },
  // https://github.com/connor4312/cockatiel#bulkheadlimit-queue
  'cockatiel bulkhead, queue of 20': (call) => {
    const policy = bulkhead(SLOTS, QUEUE)
    return (signal) => policy.execute(() => call(signal), signal)
  },
}

/** The median of three rounds, by goodput. */
export async function run(progress) {
  const rounds = []
  for (let round = 1; round <= ROUNDS; round++) {
    for (const [name, create] of Object.entries(LIMITERS)) {
      progress(`${name}, round ${round}`)
      rounds.push({ name, ...(await measure(create)) })
    }
  }
  return Object.keys(LIMITERS).map((name) => {
    const own = rounds.filter((each) => each.name === name)
    return own.sort((a, b) => a.goodput - b.goodput)[Math.floor(ROUNDS / 2)]
  })
}

function spillwayCall(call, options) {
  const guard = createSpillway().guard('downstream', {
    concurrency: { limit: SLOTS },
    queue: { size: 10_000, timeoutMs: DEADLINE_MS },
    timeout: { callMs: DEADLINE_MS },
    ...options,
  })
  return () => guard.run(({ signal }) => call(signal), { timeoutMs: DEADLINE_MS, needsMs: WORK_MS })
}

async function measure(create) {
  const downstream = await startDownstream()
  const run = create(async (signal) => {
    const answer = await fetch(downstream.url, { signal })
    await answer.text()
  })
  await fetch(`${downstream.url}/warm-up`)
  const ends = []
  const startMs = performance.now()
  for (let i = 0; i < PER_SECOND * SECONDS; i++) {
    setTimeout(() => request(run, ends), (i * 1_000) / PER_SECOND)
  }
  await sleep(SECONDS * 1_000 + DEADLINE_MS)
  const sent = downstream.arrivals.length
  downstream.stop()
  const counted = ends.filter(({ endedMs }) => {
    return endedMs >= startMs + 1_000 && endedMs < startMs + SECONDS * 1_000
  })
  const good = counted.filter(({ answered, tookMs }) => answered && tookMs <= DEADLINE_MS)
  const goodOfAll = ends.filter(({ answered, tookMs }) => answered && tookMs <= DEADLINE_MS)
  const refused = counted.filter(({ answered }) => !answered)
  return {
    goodput: Math.round(good.length / (SECONDS - 1)),
    median: medianTook(good),
    refusedMs: medianTook(refused),
    wasted: Math.round((100 * (sent - goodOfAll.length)) / sent),
  }
}

async function request(run, ends) {
  const begunMs = performance.now()
  const answered = await run(AbortSignal.timeout(DEADLINE_MS)).then(
    () => true,
    () => false,
  )
  const endedMs = performance.now()
  ends.push({ endedMs, answered, tookMs: endedMs - begunMs })
}

/** Handles ten requests at once, in order of arrival. */
async function startDownstream() {
  const slots = pLimit(SLOTS)
  return startVendor((_request, response) => {
    slots(() => sleep(WORK_MS)).then(() => response.end('ok'))
  })
}

function medianTook(calls) {
  if (calls.length === 0) return '–'
  const times = calls.map(({ tookMs }) => tookMs).sort((a, b) => a - b)
  return Math.round(times[Math.floor(times.length / 2)])
}
