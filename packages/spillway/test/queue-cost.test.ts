// test-group: io

/** Costs of jobs, counted in Redis commands because that is independent of the machine. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JobEnd, NewJob, ReserveRequest } from '../src/store/queue-port.js'
import { type RedisStore, redisStore } from '../src/store/redis/index.js'
import { type RedisServer, startRedis } from './redis-server.js'

let server: RedisServer
let store: RedisStore
let tries = 0

beforeAll(async () => {
  server = await startRedis()
  store = redisStore({ url: server.url, commandTimeoutMs: 5_000 })
  while (!store.ready) await sleep(1)
})
afterAll(async () => {
  await store.close()
  await server.stop()
})

const LIFE_US = 3_600_000_000
const JOB: NewJob = {
  data: '{"document":1}',
  priority: 2,
  delayUs: 0,
  deadlineUs: 0,
  key: '',
  tenant: '',
  cost: {},
  attempts: 2,
}
const NOTHING = { text: '', delayUs: 0, generation: -1, probe: false }

function kit(queue: string, resultUs: number) {
  const ref = { guard: 'vendor', queue, lifeUs: LIFE_US }
  const lives = { resultUs, deadUs: 60_000_000, uncountedTurns: 10 }
  const request: ReserveRequest = {
    ...ref,
    worker: 'w',
    wanted: 1,
    leaseUs: 30_000_000,
    parkUs: 1_000_000,
    agingUs: 300_000_000,
    deadUs: lives.deadUs,
    take: { guard: 'vendor', lane: 'default', limits: [], version: 0, units: [] },
    keep: 0,
    breaker: undefined,
    probes: [],
  }
  return {
    add: (...jobs: Partial<NewJob>[]) =>
      store.queues.add({
        ...ref,
        maxSize: 1_000,
        maxPerTenant: 1_000,
        jobs: jobs.map((job) => ({ ...JOB, ...job })),
      }),
    /** Takes the next job and reports how the previous ones ended. */
    async turn(before: readonly { id: string; turn: number }[], kind: JobEnd['kind'] = 'done') {
      const ends = before.map(({ id, turn }) => ({ id, turn, kind, ...NOTHING }))
      return (await store.queues.reserve({ ...request, finish: { ends, ...lives } })).jobs
    },
    waiting: async () => (await store.queues.counts(ref)).waiting,
  }
}

/** All commands except those that read the statistics. */
async function commands(): Promise<number> {
  const stats = String(await server.send('INFO', 'commandstats'))
  const counted = [...stats.matchAll(/cmdstat_(\S+?):calls=(\d+)/g)]
  return counted.reduce((sum, [, name, calls]) => (name === 'info' ? sum : sum + Number(calls)), 0)
}

describe('Redis commands per job', () => {
  it.each([
    // Script, time and queue state; remove lease and job; move the next job from the queue to a
    // lease.
    ['without a kept result', 0, {}, 10],
    // The tenant's jobs are counted: the record is read, and the count and the job's entry change.
    ['of a tenant', 0, { tenant: 'acme' }, 15],
    ['with a kept result', 60_000_000, {}, 12],
    ['with a key', 0, { key: 'k' }, 14],
    ['with long data', 0, { data: JSON.stringify('x'.repeat(10_000)) }, 14],
  ] as [string, number, Partial<NewJob>, number][])(
    'a job %s takes a bounded number of Redis commands to finish and replace',
    async (name, resultUs, job, most) => {
      const { add, turn, waiting } = kit(`${name} ${++tries}`, resultUs)
      const jobs = Array.from({ length: 21 }, (_, at) =>
        job.key ? { ...job, key: `k${at}` } : job,
      )
      await add(...jobs)
      // The first jobs create keys, which then get an expiry.
      let [mine, other] = [await turn(await turn([])), await turn([])]
      const before = await commands()
      for (let times = 0; times < 8; times++) {
        mine = await turn(mine)
        other = await turn(other)
      }
      expect(((await commands()) - before) / 16).toBeLessThanOrEqual(most)
      expect([mine.length, other.length, await waiting()]).toEqual([1, 1, 2])
    },
  )
})

describe('expiry of job queue keys', () => {
  it('all keys of a job queue expire together, after a full lifetime without use', async () => {
    const { add, turn } = kit('ends', 60_000_000)
    await add({ key: 'k', tenant: 't' }, {}, {}, { delayUs: 60_000_000 })
    await sleep(5)
    const [first] = [await turn([])]
    await sleep(5)
    await turn(await turn(first), 'dead')
    await sleep(5)
    await turn([])
    const keys = (await server.send('KEYS', '*:j2:ends:*')) as string[]
    const ends = new Set(
      await Promise.all(keys.map(async (key) => Number(await server.send('PEXPIRETIME', key)))),
    )
    expect(keys.length).toBeGreaterThan(10)
    expect(ends.size).toBe(1)
    const [endMs = 0] = ends
    expect(endMs - Date.now()).toBeGreaterThanOrEqual(LIFE_US / 1_000)
  })
})
