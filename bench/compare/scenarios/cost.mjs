/**
 * The cost of a package without failures: elapsed time per call of an empty async function, called in sequence in one
 * process; time to import the package; packages and kilobytes that `npm install` adds. Packages with fewer features
 * have an advantage here.
 */
import { spawnSync } from 'node:child_process'
import Bottleneck from 'bottleneck'
import { bulkhead, ConsecutiveBreaker, circuitBreaker, handleAll } from 'cockatiel'
import CircuitBreaker from 'opossum'
import pLimit from 'p-limit'
import PQueue from 'p-queue'
import { createSpillway } from 'spillway'
import { footprintOf } from '../parts/footprint.mjs'

const ROUND_MS = 40
const ROUNDS = 15
const IMPORTS = 5

const work = async () => 'done'

/** Each returns a function that makes one call. */
const RUNNERS = [
  {
    name: 'p-limit',
    does: 'concurrency',
    module: 'p-limit',
    create() {
      const limit = pLimit(10)
      return () => limit(work)
    },
  },
  {
    name: 'p-queue',
    does: 'concurrency, queue',
    module: 'p-queue',
    create() {
      const queue = new PQueue({ concurrency: 10 })
      return () => queue.add(work)
    },
  },
  {
    name: 'Bottleneck',
    does: 'concurrency, queue',
    module: 'bottleneck',
    create() {
      const limiter = new Bottleneck({ maxConcurrent: 10 })
      return () => limiter.schedule(work)
    },
  },
  {
    name: 'cockatiel bulkhead',
    does: 'concurrency, queue',
    module: 'cockatiel',
    create() {
      const policy = bulkhead(10, 20)
      return () => policy.execute(work)
    },
  },
  {
    name: 'Spillway',
    does: 'concurrency, queue',
    module: 'spillway',
    create() {
      const guard = createSpillway().guard('cost', {
        concurrency: { limit: 10 },
        queue: { size: 20 },
      })
      return () => guard.run(work)
    },
  },
  {
    name: 'opossum',
    does: 'breaker, timeout',
    module: 'opossum',
    create() {
      const breaker = new CircuitBreaker(work, { timeout: 3_000 })
      return () => breaker.fire()
    },
  },
  {
    name: 'cockatiel breaker',
    does: 'breaker',
    module: 'cockatiel',
    create() {
      const options = { halfOpenAfter: 10_000, breaker: new ConsecutiveBreaker(5) }
      const policy = circuitBreaker(handleAll, options)
      return () => policy.execute(work)
    },
  },
  {
    name: 'Spillway',
    does: 'breaker, timeout',
    module: 'spillway',
    create() {
      const guard = createSpillway().guard('cost', { breaker: {}, timeout: { callMs: '3s' } })
      return () => guard.run(work)
    },
  },
  { name: 'rate-limiter-flexible', does: 'limit', module: 'rate-limiter-flexible' },
  { name: 'BullMQ', does: 'limit, job queue', module: 'bullmq' },
  { name: '@fastify/rate-limit', does: 'limit of a server', module: '@fastify/rate-limit' },
]

export async function run(progress) {
  const runners = RUNNERS.map((each) => ({ ...each, run: each.create?.(), times: [] }))
  // In turns, so that a disturbance of the machine affects all of them.
  for (let round = 0; round < ROUNDS; round++) {
    progress(`round ${round + 1}`)
    for (const { run, times } of runners) if (run !== undefined) times.push(await timeOf(run))
  }
  return runners.map(({ name, does, module, run, times }) => ({
    name,
    does,
    perCall: run === undefined ? '–' : Math.round(median(times) * 10) / 10,
    importMs: importMs(module),
    ...footprintOf(module),
  }))
}

/** Elapsed microseconds per call, including the time that the package waits for timers. */
async function timeOf(run) {
  const begunMs = performance.now()
  let calls = 0
  let tookMs = 0
  while (tookMs < ROUND_MS) {
    for (let i = 0; i < 20; i++) await run()
    calls += 20
    tookMs = performance.now() - begunMs
  }
  return (tookMs * 1_000) / calls
}

/** In a new process each time; the median. */
function importMs(module) {
  const code = `const t = performance.now(); await import('${module}'); console.log(performance.now() - t)`
  const args = ['--input-type=module', '--eval', code]
  const cwd = new URL('..', import.meta.url)
  const once = () => Number(spawnSync(process.execPath, args, { cwd, encoding: 'utf8' }).stdout)
  return Math.round(median(Array.from({ length: IMPORTS }, once)))
}

function median(figures) {
  return [...figures].sort((a, b) => a - b)[Math.floor(figures.length / 2)]
}
