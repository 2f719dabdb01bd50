// test-group: io, slow

/** Job queue data in Redis: ownership, expiry and recovery from lost keys. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createRedisFleet } from './limit-claims/fleet.js'
import { createQueueKit, SECOND } from './queue-claims/queue-kit.js'

const JOB = { data: '{}', priority: 2, deadlineUs: 0, key: '', tenant: '', cost: {}, attempts: 3 }

const fleet = createRedisFleet()
beforeAll(() => fleet.start())
afterAll(() => fleet.stop())

describe('job queue data of another release', () => {
  it('job queue data in another format is left alone and does not disturb this release', async () => {
    const { add, reserve, ref } = createQueueKit(fleet)
    const theirs = `sw1:{${ref.guard}}:j:${ref.queue}:m`
    await fleet.send('SET', theirs, 'as it was kept before')
    const id = await add()
    expect((await reserve()).jobs).toMatchObject([{ id }])
    expect(await fleet.send('GET', theirs)).toBe('as it was kept before')
  })
})

describe('job queue lifetime with different pod settings', () => {
  /** The common expiry of all keys, or undefined if they differ. */
  async function endMs(guard: string): Promise<number | undefined> {
    const [keys] = (await fleet.everywhere('KEYS', `sw1:{${guard}}:*`)) as string[][]
    const ends = new Set<number>()
    for (const key of keys!) ends.add(Number(await fleet.send('PEXPIRETIME', key)))
    return ends.size === 1 ? [...ends][0] : undefined
  }
  function kitOf() {
    const { store, ref, add: _, ...rest } = createQueueKit(fleet)
    const jobs = [
      { ...JOB, delayUs: 0 },
      { ...JOB, key: 'k', tenant: 't', delayUs: SECOND },
    ]
    const add = (lifeUs: number) =>
      store.queues.add({ ...ref, lifeUs, jobs, maxSize: 100, maxPerTenant: 100 })
    return { ...rest, ref, add }
  }

  it('adding a job with a longer lifetime extends all keys at once', async () => {
    const { ref, add } = kitOf()
    await add(3_600 * SECOND)
    const before = (await endMs(ref.guard)) as number
    const month = 30 * 86_400
    await add(month * SECOND)
    const after = (await endMs(ref.guard)) as number
    expect(before).toBeLessThan(after)
    expect(after).toBeGreaterThanOrEqual(Date.now() + month * 1_000)
  })

  it('a shorter lifetime never shortens the expiry, even on renewal', async () => {
    const { ref, add } = kitOf()
    await add(10 * SECOND)
    const before = (await endMs(ref.guard)) as number
    // After a tenth of its lifetime the next command renews the expiry.
    await fleet.sleep(1_100)
    await add(2 * SECOND)
    expect(await endMs(ref.guard)).toBe(before)
  })
})

describe('job queue with a lost key', () => {
  const PARTS = {
    waiting: 'w',
    delayed: 'z',
    leases: 'l',
    ends: 'e',
    dead: 'x',
    jobs: 'j',
  }

  it.each(Object.keys(PARTS) as (keyof typeof PARTS)[])(
    'job queue continues without the lost part: %s',
    async (part) => {
      const { store, ref, addMany, reserve, finish, extend, counts, dead } = createQueueKit(fleet)
      const own = { parkUs: SECOND, leaseUs: SECOND / 5, deadUs: SECOND }
      await addMany(Array.from({ length: 12 }, (_, at) => ({ priority: at % 4, tenant: `t${at}` })))
      await addMany([{ delayUs: SECOND / 5 }])
      const [lapsing, failing, dying, done] = (await reserve(4, own)).jobs
      await finish(dying!, { kind: 'dead' }, { deadUs: SECOND })
      await finish(done!, {}, { resultUs: SECOND })
      expect(await fleet.send('DEL', `sw1:{${ref.guard}}:j2:${ref.queue}:${PARTS[part]}`)).toBe(1)
      expect(['kept', 'lost']).toContain(await extend(lapsing!))
      expect(['again', 'stale']).toContain(await finish(failing!, { kind: 'failed' }))
      await store.queues.counts({ ...ref, tenants: 5 })
      await dead()
      // Until the due time of every remaining entry.
      await fleet.sleep(600)
      await reserve(20, own)
      await fleet.sleep(600)
      await reserve(20, { ...own, worker: 'v' })

      const ids = await addMany([3, 0, 2].map((priority) => ({ priority, tenant: 'new' })))
      const taken = (await reserve(20, { leaseUs: 60 * SECOND })).jobs.map(({ id }) => id)
      expect(taken).toEqual(expect.arrayContaining(ids))
      expect(new Set(taken)).toHaveLength(taken.length)
      expect(await counts()).toMatchObject({ waiting: 0, byPriority: [0, 0, 0, 0], delayed: 0 })
    },
  )

  it('job queue drops entries without a record and hands out the jobs behind them once', async () => {
    const { ref, addMany, reserve, counts } = createQueueKit(fleet)
    await addMany(Array.from({ length: 350 }, (_, at) => ({ priority: at % 4 })))
    await fleet.send('DEL', `sw1:{${ref.guard}}:j2:${ref.queue}:j`)
    const ids = await addMany(Array.from({ length: 5 }, () => ({ priority: 3 })))
    const taken: string[] = []
    let trips = 0
    // Requests jobs until the queue is blocked, as workers do.
    for (let blocked = 'no'; blocked === 'no'; trips++) {
      const reply = await reserve(10)
      blocked = reply.blocked
      taken.push(...reply.jobs.map(({ id }) => id))
    }
    expect(taken).toEqual(ids)
    expect(trips).toBeLessThanOrEqual(5)
    expect(await counts()).toMatchObject({ waiting: 0, active: 5 })
  })

  it('job queue accepts as many jobs as before once lost entries are dropped', async () => {
    const { ref, add, addMany, reserve } = createQueueKit(fleet)
    await addMany([0, 1, 2].map((priority) => ({ priority })))
    await fleet.send('DEL', `sw1:{${ref.guard}}:j2:${ref.queue}:w`)
    expect(await add({}, 3)).toBeUndefined()
    expect((await reserve()).jobs).toEqual([])
    expect(await add({}, 3)).toBeDefined()
  })
})
