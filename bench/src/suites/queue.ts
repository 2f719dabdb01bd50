/**
 * Cost of a job in a job queue, with a real Redis server on this machine: the handler does nothing, there are no
 * limits and no breaker, and finished jobs are not kept. Jobs and workers exist before the clock starts; both sides
 * are paused until then.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Queue, Worker } from 'bullmq'
import { createSpillway } from 'spillway'
import { type RedisStore, redisStore } from 'spillway/redis'
import type { Comparison, Preparation, Round, Suite } from '../measure.js'
import { peerName } from '../peer-name.js'
import { startRedis } from '../redis-server.js'

const ROUNDS = { warmUp: 2, counted: 7 }
const JOBS = 4_000
const PATIENCE_MS = 5_000

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

/** Counts finished jobs and resolves when the expected number is reached. */
function createCounter() {
  let left = 0
  let finish = () => {}
  return {
    expect(count: number): Promise<void> {
      left = count
      return new Promise((resolve) => {
        finish = resolve
      })
    },
    done(): void {
      if (--left === 0) finish()
    },
  }
}

/** Adds jobs to a paused queue and measures the time from its resumption until all are finished. */
function jobsPerSecond(queue: {
  pause(): Promise<unknown>
  add(count: number): Promise<unknown>
  resume(): Promise<unknown>
  done: ReturnType<typeof createCounter>
}): Round {
  return async () => {
    await queue.pause()
    await queue.add(JOBS)
    const allDone = queue.done.expect(JOBS)
    const startMs = performance.now()
    await queue.resume()
    await allDone
    return JOBS / ((performance.now() - startMs) / 1_000)
  }
}

const dataOf = (index: number) => ({ document: index, prompt: 'summarise' })

/** Each worker has its own store, like a worker in its own pod. */
async function openOurs(url: string, workers: number, preparation: Preparation) {
  const done = createCounter()
  const open = async () => {
    const spillway = createSpillway({ store: await openStore(url, preparation) })
    preparation.atEnd(() => spillway.close())
    spillway.guard('vendor', {})
    return spillway.jobQueue('batch', { guard: 'vendor', resultMs: 0 })
  }
  for (let worker = 0; worker < workers; worker++) {
    const queue = await open()
    queue.work(() => done.done(), { concurrency: 1 })
  }
  const queue = await open()
  return {
    pause: () => queue.pause(),
    resume: () => queue.resume(),
    add: (count: number) =>
      queue.addMany(Array.from({ length: count }, (_, index) => ({ data: dataOf(index) }))),
    done,
  }
}

async function openPeer(url: string, workers: number, { atEnd }: Preparation) {
  const done = createCounter()
  const connection = { url, maxRetriesPerRequest: null }
  for (let number = 0; number < workers; number++) {
    const worker = new Worker('batch', async () => done.done(), { connection, concurrency: 1 })
    atEnd(() => worker.close())
    await worker.waitUntilReady()
  }
  const queue = new Queue('batch', {
    connection,
    defaultJobOptions: { removeOnComplete: true, attempts: 3 },
  })
  atEnd(() => queue.close())
  await queue.waitUntilReady()
  return {
    pause: () => queue.pause(),
    resume: () => queue.resume(),
    add: (count: number) =>
      queue.addBulk(
        Array.from({ length: count }, (_, index) => ({ name: 'j', data: dataOf(index) })),
      ),
    done,
  }
}

function throughput(workers: number): Comparison {
  return {
    name: `queue-vs-bullmq-${workers}`,
    what: `jobs that do nothing, ${workers === 1 ? 'one worker' : `${workers} workers`} of one job at a time`,
    target: 1,
    peerName: peerName('bullmq'),
    unit: 'jobs/s',
    rounds: ROUNDS,
    async prepare(preparation) {
      const url = await startServer(preparation)
      return {
        ours: jobsPerSecond(await openOurs(url, workers, preparation)),
        peer: jobsPerSecond(await openPeer(url, workers, preparation)),
      }
    },
  }
}

const MANY = 1_000_000
const FEW = 1_000
const IN_A_STEP = 50
const STEPS = 20

/** Measures how fast jobs are added, reserved and finished while `waiting` other jobs are in the queue. */
async function openLong(waiting: number, preparation: Preparation): Promise<Round> {
  const { queues } = await openStore(await startServer(preparation), preparation)
  const ref = { guard: 'vendor', queue: 'batch', lifeUs: 3_600_000_000 }
  const job = {
    data: JSON.stringify(dataOf(1)),
    priority: 2,
    delayUs: 0,
    deadlineUs: 0,
    key: '',
    tenant: '',
    cost: {},
    attempts: 3,
  }
  const add = async (count: number) => {
    const most = { maxSize: 2 * MANY, maxPerTenant: 2 * MANY }
    await queues.add({ ...ref, jobs: Array.from({ length: count }, () => job), ...most })
  }
  for (let added = 0; added < waiting; added += 200) {
    preparation.signal.throwIfAborted()
    await add(200)
  }
  const asking = {
    ...ref,
    worker: 'w',
    wanted: IN_A_STEP,
    leaseUs: 30_000_000,
    parkUs: 0,
    agingUs: 300_000_000,
    deadUs: 60_000_000,
    take: { guard: 'vendor', lane: 'default', limits: [], version: 0, units: [] },
    keep: 0,
    breaker: undefined,
    probes: [],
  }
  const end = { kind: 'done' as const, text: '', delayUs: 0, generation: -1, probe: false }
  return async () => {
    const startMs = performance.now()
    for (let step = 0; step < STEPS; step++) {
      await add(IN_A_STEP)
      const { jobs } = await queues.reserve(asking)
      if (jobs.length < IN_A_STEP) throw new Error('jobs are missing')
      const ends = jobs.map(({ id, turn }) => ({ id, turn, ...end }))
      await queues.finish({
        ...ref,
        ends,
        resultUs: 0,
        deadUs: 60_000_000,
        uncountedTurns: 10,
        breaker: undefined,
      })
    }
    return (STEPS * IN_A_STEP) / ((performance.now() - startMs) / 1_000)
  }
}

const growthQueued: Comparison = {
  name: 'growth-queued',
  what: `add, reserve and finish a job, with ${MANY.toLocaleString('en-US')} waiting, and with ${FEW.toLocaleString('en-US')}`,
  target: 0.8,
  peerName: `spillway with ${FEW.toLocaleString('en-US')} waiting`,
  unit: 'jobs/s',
  rounds: { warmUp: 2, counted: 15 },
  async prepare(preparation) {
    return { ours: await openLong(MANY, preparation), peer: await openLong(FEW, preparation) }
  },
}

export const queue: Suite = {
  name: 'queue',
  what: 'cost of a job in a job queue, with a Redis server on this machine',
  benches: [throughput(1), throughput(8), growthQueued],
}
