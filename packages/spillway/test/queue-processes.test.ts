/** Workers are processes that die, and servers that fail over. Nothing that was confirmed is lost. */
import { type ChildProcess, spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createSpillway, type JobQueueOptions } from 'spillway'
import { type RedisStoreOptions, redisStore } from 'spillway/redis'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createRandom } from '../src/core/random.js'
import { endWithUs } from './end-with-us.js'
import { MASTER, startSentinels } from './redis-sentinels.js'
import { startRedis } from './redis-server.js'

const PROGRAM = fileURLToPath(new URL('fixtures/queue-worker.mjs', import.meta.url))
const PACKAGE = fileURLToPath(new URL('..', import.meta.url))
const LONGEST_MS = 240_000

interface Run {
  id: string
  attempt: number
  by: number
}

/** So many workers; whoever is killed has a successor. */
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
    const forget = endWithUs(child.pid)
    child.on('message', (run: Omit<Run, 'by'>) => runs.push({ ...run, by: child.pid ?? 0 }))
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
  const store = redisStore({ ...connection, commandTimeoutMs: 2_000 })
  const spillway = createSpillway({ store, pod: 'parent' })
  spillway.guard('vendor', {})
  onTestFinished(async () => {
    await spillway.close()
    await store.close()
  })
  const queue = spillway.queue<number>('batch', { guard: 'vendor', ...settings })
  return { store, queue }
}

describe('eight workers that are killed at random', () => {
  it(
    'do 20,000 jobs, each at least once, and twice only after a lease that ended',
    async () => {
      const server = await startRedis()
      onTestFinished(() => server.stop())
      const connection = { url: server.url }
      const settings = { leaseMs: 1_500, attempts: 50 }
      const { store, queue } = openQueue(connection, settings)
      await vi.waitUntil(() => store.ready, { timeout: 10_000 })
      const { runs, workers, stop } = startWorkers(8, connection, settings)
      const random = createRandom(7)
      let kills = 0
      let killing = true
      const killer = (async () => {
        while (killing) {
          await sleep(200 + 600 * random())
          if (runs.length === 0) continue
          workers[Math.floor(random() * workers.length)]?.kill('SIGKILL')
          kills++
        }
      })()
      const jobs = Array.from({ length: 20_000 }, (_, data) => ({ data }))
      const ids = (await queue.addMany(jobs)).map(({ id }) => id)
      expect(new Set(ids).size).toBe(20_000)
      await vi.waitUntil(async () => (await queue.counts()).done === 20_000, {
        timeout: LONGEST_MS - 40_000,
        interval: 250,
      })
      killing = false
      await killer
      const counts = await queue.counts()
      stop()
      expect(kills).toBeGreaterThan(5)
      expect(counts).toMatchObject({ waiting: 0, delayed: 0, active: 0, dead: 0 })
      // A worker that dies between its work and its word has told us, but not the store.
      const ran = new Set(runs.map(({ id }) => id))
      const again = runs.length - ran.size
      expect(again).toBeLessThanOrEqual(counts.lapsed)
      for (const { id, attempt } of runs.filter(({ attempt: each }) => each > 1)) {
        expect([id, attempt <= 1 + counts.lapsed]).toEqual([id, true])
      }
      // Killed just before it could tell us, it may have told the store: these we have not heard of.
      expect(20_000 - ran.size).toBeLessThanOrEqual(5 * kills)
      expectOrder(runs, 5)
    },
    LONGEST_MS,
  )
})

/** Jobs that nobody disturbed began in the order in which they came, on each worker. */
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
      // Those that run at once may end in any order.
      const before = own[at - concurrency] as Run
      expect(Number((own[at] as Run).id)).toBeGreaterThan(Number(before.id))
    }
  }
}

describe('a queue whose jobs are confirmed by a replica', () => {
  it(
    'loses none of them when the master dies',
    async () => {
      const watched = await startSentinels({ downMs: 1_000 })
      onTestFinished(() => watched.stop())
      const connection = { sentinels: watched.urls, master: MASTER }
      const settings = { leaseMs: 2_000, attempts: 50, durable: true, confirmMs: 3_000 }
      const { queue, store } = openQueue(connection, settings)
      await vi.waitUntil(() => store.ready, { timeout: 20_000 })
      const { runs } = startWorkers(4, connection, settings)
      const confirmed = new Set<string>()
      let dying: Promise<void> | undefined
      for (let chunk = 0; chunk < 40; chunk++) {
        const jobs = Array.from({ length: 50 }, (_, index) => {
          const data = chunk * 50 + index
          return { data, key: `job-${data}` }
        })
        if (chunk === 15) dying = watched.servers[0]?.kill()
        try {
          for (const { id } of await queue.addMany(jobs)) confirmed.add(id)
        } catch (error) {
          expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
          // With no replica left nothing is confirmed any more.
          if (chunk >= 15) break
        }
      }
      await dying
      expect(confirmed.size).toBeGreaterThanOrEqual(10 * 50)
      await vi.waitUntil(
        () => {
          const ran = new Set(runs.map(({ id }) => id))
          return [...confirmed].every((id) => ran.has(id))
        },
        { timeout: 60_000, interval: 200 },
      )
    },
    LONGEST_MS,
  )

  it('says so when no replica has it', async () => {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    const { queue, store } = openQueue({ url: server.url }, { durable: true, confirmMs: 100 })
    await vi.waitUntil(() => store.ready, { timeout: 10_000 })
    await expect(queue.add(1)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      details: { replicas: 1 },
    })
    expect(await queue.counts()).toMatchObject({ waiting: 1 })
  })
})
