// test-group: io, slow

/** Workers are processes that die, and servers fail over. No confirmed job is lost. */
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { createSpillway, type JobQueueOptions } from 'spillway'
import { type RedisStoreOptions, redisStore } from 'spillway/redis'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createRandom } from '../src/core/random.js'
import { endWithThisProcess } from './end-with-process.js'
import { usualOrLong } from './long-run.js'
import { MASTER, startSentinels } from './redis-sentinels.js'
import { startRedis } from './redis-server.js'

const PROGRAM = fileURLToPath(new URL('fixtures/queue-worker.mjs', import.meta.url))
const PACKAGE = fileURLToPath(new URL('..', import.meta.url))
/** Starting a process is what costs most here. */
const WORKERS = usualOrLong(3, 8)
const KILLS = usualOrLong(4, 8)
/** Usually half a minute, but machines may be busy. */
const LONGEST_MS = 600_000

interface Run {
  id: string
  attempt: number
  by: number
  /** When the run was reported. */
  atMs: number
}

/** Starts `count` workers and replaces each one that is killed. */
function startWorkers(
  count: number,
  connection: RedisStoreOptions,
  settings: Partial<JobQueueOptions>,
) {
  const runs: Run[] = []
  const workers: ChildProcess[] = []
  let stopped = false
  const start = (place: number) => {
    const args = [PROGRAM, JSON.stringify(connection), JSON.stringify(settings)]
    const stdio = ['ignore', 'ignore', 'inherit', 'ipc'] as const
    const child = spawn(process.execPath, args, { cwd: PACKAGE, stdio: [...stdio] })
    const forget = endWithThisProcess(child.pid)
    child.on('message', (run: Omit<Run, 'by' | 'atMs'>) =>
      runs.push({ ...run, by: child.pid ?? 0, atMs: performance.now() }),
    )
    child.once('exit', () => {
      forget()
      if (!stopped) start(place)
    })
    workers[place] = child
  }
  for (let place = 0; place < count; place++) start(place)
  const stop = () => {
    stopped = true
    for (const worker of workers) worker.kill('SIGKILL')
  }
  onTestFinished(stop)
  return { runs, workers, stop }
}

function openQueue(connection: RedisStoreOptions, settings: Partial<JobQueueOptions>) {
  const store = redisStore({ commandTimeoutMs: 2_000, ...connection })
  const spillway = createSpillway({ store, pod: 'parent' })
  spillway.guard('vendor', {})
  onTestFinished(async () => {
    await spillway.close()
    await store.close()
  })
  const queue = spillway.jobQueue<number>('batch', { guard: 'vendor', ...settings })
  return { store, queue }
}

/**
 * Kills a random worker each time `every` more jobs have run, independent of the machine's speed.
 */
function startKiller({ runs, workers }: ReturnType<typeof startWorkers>, every: number) {
  const random = createRandom(7)
  const killer = { kills: 0, stop: () => clearInterval(timer) }
  const timer = setInterval(() => {
    if (runs.length < every * (killer.kills + 1)) return
    workers[Math.floor(random() * workers.length)]?.kill('SIGKILL')
    killer.kills++
  }, 10)
  onTestFinished(killer.stop)
  return killer
}

/** Jobs that were reported more than once. */
function ranTwice(runs: readonly Run[]): Run[] {
  const first = new Set<string>()
  return runs.filter(({ id }) => first.has(id) || !first.add(id))
}

describe('workers killed at random', () => {
  it(
    'killed workers run every job at least once, and twice only after an expired lease',
    async () => {
      const server = await startRedis()
      onTestFinished(() => server.stop())
      const connection = { url: server.url }
      const settings = { leaseMs: 1_500, attempts: 50 }
      const { store, queue } = openQueue(connection, settings)
      await vi.waitUntil(() => store.ready, { timeout: 10_000 })
      const crew = startWorkers(WORKERS, connection, settings)
      const { runs } = crew
      const count = usualOrLong(500, 6_000)
      const killer = startKiller(crew, count / (KILLS + 2))
      const jobs = Array.from({ length: count }, (_, data) => ({ data }))
      const ids = (await queue.addMany(jobs)).map(({ id }) => id)
      expect(new Set(ids).size).toBe(count)
      await vi.waitUntil(async () => (await queue.counts()).done === count, {
        timeout: LONGEST_MS - 40_000,
        interval: 250,
      })
      killer.stop()
      const counts = await queue.counts()
      crew.stop()
      expect(killer.kills).toBeGreaterThanOrEqual(KILLS)
      expect(counts).toMatchObject({ waiting: 0, delayed: 0, active: 0, dead: 0 })
      // A worker that dies after its work has reported to the test, but not to the store.
      expect(ranTwice(runs).length).toBeLessThanOrEqual(counts.expiredLeases)
      for (const { id, attempt } of runs.filter(({ attempt: each }) => each > 1)) {
        expect([id, attempt <= 1 + counts.expiredLeases]).toEqual([id, true])
      }
      // A worker killed before its report to the test may have reported to the store.
      const ran = new Set(runs.map(({ id }) => id))
      expect(count - ran.size).toBeLessThanOrEqual(5 * killer.kills)
      expectOrder(runs, 5)
    },
    LONGEST_MS,
  )
})

/** Undisturbed jobs begin in the order of arrival on each worker. */
function expectOrder(runs: readonly Run[], concurrency: number): void {
  const byWorker = new Map<number, Run[]>()
  for (const run of runs) {
    if (run.attempt > 1) continue
    const own = byWorker.get(run.by)
    if (own === undefined) byWorker.set(run.by, [run])
    else own.push(run)
  }
  for (const own of byWorker.values()) {
    for (let at = concurrency; at < own.length; at++) {
      // Concurrent jobs may end in any order.
      const before = own[at - concurrency] as Run
      expect(Number((own[at] as Run).id)).toBeGreaterThan(Number(before.id))
    }
  }
}

const CONFIRMED = usualOrLong(1_000, 20_000)

describe('jobs that a replica has confirmed, workers that are killed, and a master that dies', () => {
  it(
    'every confirmed job runs, and twice only after an expired lease or a lost replication',
    async () => {
      const watched = await startSentinels({ downMs: 1_000 })
      onTestFinished(() => watched.stop())
      const connection = { sentinels: watched.urls, master: MASTER }
      const settings = { leaseMs: 2_000, attempts: 50, durable: true, confirmMs: 3_000 }
      const { queue, store } = openQueue(connection, settings)
      await vi.waitUntil(() => store.ready, { timeout: 20_000 })
      const confirmed = new Set<string>()
      for (let from = 0; from < CONFIRMED; from += 1_000) {
        const jobs = Array.from({ length: 1_000 }, (_, index) => {
          return { data: from + index, key: `job-${from + index}` }
        })
        // Unconfirmed jobs are added again under the same key.
        const add = async () => {
          const added = await queue.addMany(jobs).catch(() => [])
          for (const { id } of added) confirmed.add(id)
          return added.length > 0
        }
        await vi.waitUntil(add, { timeout: 60_000 })
      }
      expect(confirmed.size).toBe(CONFIRMED)
      const crew = startWorkers(WORKERS, connection, settings)
      const { runs } = crew
      const killer = startKiller(crew, CONFIRMED / (KILLS + 2))
      await vi.waitUntil(() => runs.length > 0.4 * CONFIRMED, { timeout: LONGEST_MS, interval: 20 })
      const diedMs = performance.now()
      await watched.servers[0]?.kill()
      const doneNow = async () => (await queue.counts().catch(() => undefined))?.done
      await vi.waitUntil(async () => (await doneNow()) === CONFIRMED, {
        timeout: LONGEST_MS,
        interval: 250,
      })
      killer.stop()
      const counts = await queue.counts()
      crew.stop()
      expect(killer.kills).toBeGreaterThanOrEqual(KILLS)
      expect(counts).toMatchObject({ waiting: 0, delayed: 0, active: 0, dead: 0 })
      // A replica lags by less than a second, so jobs of that second may be unknown.
      const known = (run: Run | undefined) => run !== undefined && run.atMs < diedMs - 1_000
      const first = new Map(runs.toReversed().map((run) => [run.id, run]))
      const twice = ranTwice(runs).filter(({ id }) => known(first.get(id)))
      expect(twice.length).toBeLessThanOrEqual(counts.expiredLeases)
    },
    LONGEST_MS,
  )
})

describe('job queue with confirmation by replicas', () => {
  it('add() rejects when no replica confirms the job', async () => {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    const { queue, store } = openQueue(
      // A slow answer must not look like a missing one.
      { url: server.url, commandTimeoutMs: 30_000 },
      { durable: true, confirmMs: 100 },
    )
    await vi.waitUntil(() => store.ready, { timeout: 10_000 })
    await expect(queue.add(1)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      details: { replicas: 1 },
    })
    expect(await queue.counts()).toMatchObject({ waiting: 1 })
  })
})
