// test-group: io

/** A job queue whose jobs have all ended keeps no data that grows. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { systemClock } from '../src/core/time/clock.js'
import { createKeys } from '../src/store/keys.js'
import { emptyGuard, emptyLane } from '../src/store/limits/lane-state.js'
import { addJobs } from '../src/store/queue/add-jobs.js'
import { finishJobs } from '../src/store/queue/finish-jobs.js'
import { commandQueue } from '../src/store/queue/maintenance.js'
import { emptyQueue } from '../src/store/queue/queue-state.js'
import { reserveJobs } from '../src/store/queue/reserve-jobs.js'
import type { JobEnd, NewJob, QueueStore } from '../src/store/queue-port.js'
import { createScriptRunner, type ScriptRunner } from '../src/store/redis/connection/runner.js'
import { createRedisQueues } from '../src/store/redis/operations/redis-queues.js'
import { fc } from './fast-check.js'
import { type RedisServer, startRedis } from './redis-server.js'
import { connectTestRedis } from './test-connection.js'

const SECOND = 1_000_000
const QUEUE = { guard: 'g', queue: 'q', lifeUs: 3_600 * SECOND }
const LIVES = { resultUs: 2 * SECOND, deadUs: 4 * SECOND, uncountedTurns: 2 }

type Port = Pick<QueueStore, 'add' | 'reserve' | 'finish' | 'command'>

const job: fc.Arbitrary<NewJob> = fc.record({
  data: fc.constantFrom('1', JSON.stringify('x'.repeat(1_000))),
  priority: fc.nat(3),
  delayUs: fc.constantFrom(0, 0, SECOND),
  deadlineUs: fc.constantFrom(0, 0, SECOND, 3 * SECOND),
  key: fc.constantFrom('', '', 'k1', 'k2'),
  tenant: fc.constantFrom('', 'a', 'b', 'c:{d}', '0:'),
  cost: fc.constant({}),
  attempts: fc.integer({ min: 1, max: 2 }),
})
const which = fc.nat(50)
const step = fc.oneof(
  fc.record({
    kind: fc.constant('add' as const),
    jobs: fc.array(job, { minLength: 1, maxLength: 4 }),
  }),
  fc.record({
    kind: fc.constant('reserve' as const),
    wanted: fc.nat(3),
    leaseUs: fc.constantFrom(SECOND / 2, 3 * SECOND),
  }),
  fc.record({
    kind: fc.constant('finish' as const),
    which,
    as: fc.constantFrom('done', 'failed', 'dead', 'released', 'returned'),
    delayUs: fc.constantFrom(0, SECOND),
    text: fc.constantFrom('', 'why'),
  }),
  fc.record({
    kind: fc.constantFrom('cancel' as const, 'replay' as const, 'drop' as const),
    which,
    keepUs: fc.constantFrom(0, SECOND),
  }),
)
const history = fc.array(fc.tuple(fc.nat(SECOND), step), { minLength: 30, maxLength: 60 })

type Steps = typeof history extends fc.Arbitrary<infer T> ? T : never

/** Plays a history, then lets every job end and expire. */
async function play(port: Port, steps: Steps, time: { us: number }) {
  const ids: string[] = []
  const leased: { id: string; turn: number }[] = []
  const reserve = async (wanted: number, leaseUs: number) => {
    const take = { guard: 'g', lane: 'l', limits: [], version: 0, units: [] }
    const own = { worker: 'w', wanted, leaseUs, parkUs: 0, agingUs: SECOND, deadUs: LIVES.deadUs }
    const rest = { take, keep: 0, breaker: undefined, probes: [] }
    const { jobs } = await port.reserve({ ...QUEUE, ...own, ...rest })
    leased.push(...jobs)
    return jobs
  }
  const finish = (end: Pick<JobEnd, 'id' | 'turn'> & Partial<JobEnd>, own = {}) => {
    const whole = { kind: 'done' as const, text: '', delayUs: 0, generation: -1, probe: false }
    const ends = [{ ...whole, ...end }]
    return port.finish({ ...QUEUE, ...LIVES, ...own, breaker: undefined, ends })
  }
  for (const [passedUs, op] of steps) {
    time.us += passedUs
    if (op.kind === 'add') {
      const most = { maxSize: 30, maxPerTenant: 8 }
      const { jobs } = await port.add({ ...QUEUE, jobs: op.jobs, ...most })
      ids.push(...jobs.map(({ id }) => id))
    } else if (op.kind === 'reserve') await reserve(op.wanted, op.leaseUs)
    else if (op.kind === 'finish') {
      const one = leased.at(-1 - (op.which % Math.max(1, leased.length)))
      const { as, delayUs, text } = op
      if (one)
        await finish({ id: one.id, turn: one.turn, kind: as as JobEnd['kind'], delayUs, text })
    } else {
      const id = ids[op.which % Math.max(1, ids.length)] ?? 'none'
      await port.command({ ...QUEUE, command: { kind: op.kind, id, keepUs: op.keepUs } })
    }
  }
  for (let round = 0; round < 12; round++) {
    time.us += 5 * SECOND
    for (const { id, turn } of await reserve(50, SECOND))
      await finish({ id, turn }, { resultUs: 0 })
  }
}

describe('an empty queue', () => {
  it('an empty job queue keeps only four tags of jobs without a tenant in memory, after any history', async () => {
    await fc.assert(
      fc.asyncProperty(history, async (steps) => {
        const time = { us: 2_000_000_000 * SECOND }
        const state = emptyQueue()
        const around = { lane: emptyLane(), guard: emptyGuard(), breaker: undefined }
        const port: Port = {
          add: (request) => addJobs(state, request, time.us).reply,
          reserve: (request) => reserveJobs(state, around, request, time.us).reply,
          finish: (request) => finishJobs(state, undefined, request, time.us).reply,
          command: ({ command }) => commandQueue(state, command, time.us).reply,
        }
        await play(port, steps, time)
        const { jobs, data, texts, keys, depths, open, delayed, leases, ends, dead } = state
        const all = { jobs, data, texts, keys, depths, open, delayed, leases, ends, dead }
        const sizes = Object.entries(all).map(([name, { size }]) => [name, size])
        expect(sizes.filter(([, size]) => size !== 0)).toEqual([])
        expect([...state.tags.keys()].filter((field) => !/^[0-3]:$/.test(field))).toEqual([])
      }),
      { numRuns: 150 },
    )
  })

  describe('in Redis', () => {
    let server: RedisServer
    let runner: ScriptRunner
    beforeAll(async () => {
      server = await startRedis()
      const client = connectTestRedis({ url: server.url })
      runner = createScriptRunner(client, { commandTimeoutMs: 5_000, clock: systemClock })
      await vi.waitUntil(() => client.ready, { timeout: 10_000 })
    })
    afterAll(async () => {
      await runner.close()
      await server.stop()
    })

    it('an empty job queue keeps only four tags of jobs without a tenant in Redis, after any history', async () => {
      let number = 0
      await fc.assert(
        fc.asyncProperty(history, async (steps) => {
          const time = { us: 2_000_000_000 * SECOND }
          const keys = createKeys(`leak${++number}-`)
          const queues = createRedisQueues({
            runner,
            keys,
            subscribe: () => ({ close() {} }),
            replicaConfirmation: () => Promise.reject(new Error('nothing is confirmed here')),
            time: () => String(time.us),
          })
          await play(queues, steps, time)
          const [meta, ...parts] = keys.queue(QUEUE.guard, QUEUE.queue)
          const left: string[] = []
          for (const key of (await server.send('KEYS', `${keys.prefix}*`)) as string[]) {
            if (key === meta) continue
            expect(parts).toContain(key)
            const type = await server.send('TYPE', key)
            expect([key, type]).toEqual([key, 'hash'])
            for (const field of (await server.send('HKEYS', key)) as string[]) {
              if (field !== '' && !(key.endsWith(':t') && /^[0-3]:$/.test(field))) {
                left.push(`${key} ${field}`)
              }
            }
          }
          expect(left).toEqual([])
        }),
        { numRuns: 25 },
      )
    }, 60_000)
  })
})
