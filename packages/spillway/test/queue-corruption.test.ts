// test-group: io

/** Damaged job records on a real Redis: each becomes one dead letter, and the other jobs continue. */
import { createSpillway } from 'spillway'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { createRedisFleet, type Fleet } from './limit-claims/fleet.js'
import { createMemoryFleet } from './limit-claims/memory-fleet.js'
import { createQueueKit, SECOND } from './queue-claims/queue-kit.js'
import { START_MS } from './topologies.js'

const fleet = createRedisFleet()
beforeAll(() => fleet.start(), START_MS)
afterAll(() => fleet.stop())

const keyOf = (ref: { guard: string; queue: string }, part: string) =>
  `sw1:{${ref.guard}}:j2:${ref.queue}:${part}`

/** Changes a stored record in the server; `how` is Lua with the unpacked record as `job`. */
async function damage(ref: { guard: string; queue: string }, id: string, how: string) {
  const script = `
    local packed = redis.call('HGET', KEYS[1], ARGV[1])
    local job = cmsgpack.unpack(packed)
    ${how}
    redis.call('HSET', KEYS[1], ARGV[1], packed)`
  await fleet.send('EVAL', script, '1', keyOf(ref, 'j'), id)
}

const pack = (change: string) => `${change} packed = cmsgpack.pack(job)`
const DAMAGES: Record<string, string> = {
  'cut off': 'packed = string.sub(packed, 1, #packed / 2)',
  empty: "packed = ''",
  'plain text': "packed = 'not a record'",
  'a number': 'packed = cmsgpack.pack(7)',
  'an empty array': 'packed = cmsgpack.pack({})',
  'without its last fields': pack('for i = 9, #job do job[i] = nil end'),
  'with a text as its priority': pack("job[2] = 'high'"),
  'with an unknown priority': pack('job[2] = 17'),
  'with a priority that differs from its list': pack('job[2] = 0'),
  'with a table as its tenant': pack('job[9] = {}'),
  'with a text as its cost': pack("job[11] = 'much'"),
  'with a text as one of its costs': pack("job[11] = { requests = 'many' }"),
  'with a number as its data': pack('job[14] = 5'),
  'with negative attempts': pack('job[4] = -1000000'),
  'with a state that is no number': pack("job[1] = 'waiting'"),
  'with a deadline that is not a number': pack('job[8] = 0/0'),
}

describe('a job record that is damaged', () => {
  it.each(Object.keys(DAMAGES))(
    'a damaged job record (%s) becomes one dead letter, and the worker runs the other jobs',
    async (kind) => {
      const name = `corrupt-${kind}`.replaceAll(' ', '-')
      const spillway = createSpillway({ store: fleet.store(), pod: 'p' })
      onTestFinished(() => spillway.close({ graceMs: 0 }))
      spillway.guard(name, {})
      const settings = { guard: name, maxSize: 40, maxPerTenant: 4 }
      const queue = spillway.jobQueue<number>('q', settings)
      const jobs = [1, 2, 3, 4].map((data) => ({ data, tenant: 't', key: `k${data}` }))
      const added = await queue.addMany(jobs)
      const bad = added[1]!.id
      await damage({ guard: name, queue: 'q' }, bad, DAMAGES[kind]!)
      const done: number[] = []
      const worker = queue.work(async ({ data }) => void done.push(data), { concurrency: 1 })
      await vi.waitUntil(() => done.length === 3, { timeout: 5_000 })
      expect(done).toEqual([1, 3, 4])
      await vi.waitUntil(async () => (await queue.counts()).dead === 1, { timeout: 5_000 })
      const [letter] = await queue.dead()
      expect(letter).toMatchObject({ id: bad, state: 'dead', error: expect.any(String) })
      expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, delayed: 0, dead: 1 })
      // The tenant can add as many jobs as before, and the key is free once the letter is dropped.
      await worker.close()
      expect(await queue.drop(bad)).toBe(1)
      expect(await queue.addMany(jobs.map(({ data, tenant }) => ({ data, tenant })))).toHaveLength(
        4,
      )
      expect(await queue.counts()).toMatchObject({ waiting: 4, dead: 0 })
    },
  )

  it.each(['delayed', 'leased', 'ended', 'dead'])(
    'a damaged record of a job that is %s does not affect other jobs',
    async (where) => {
      const { ref, addMany, add, reserve, finish, extend, command, counts, dead, job } =
        createQueueKit(fleet, { leaseUs: SECOND / 5 })
      const [bad] = await addMany([{ delayUs: where === 'delayed' ? SECOND / 5 : 0, tenant: 't' }])
      if (where !== 'delayed') {
        const [taken] = (await reserve()).jobs
        const lives = { resultUs: SECOND / 5, deadUs: SECOND / 5 }
        if (where === 'ended') await finish(taken!, {}, lives)
        if (where === 'dead') await finish(taken!, { kind: 'dead' }, lives)
      }
      await damage(ref, bad!, "packed = 'x'")
      if (where === 'leased') expect(await extend({ id: bad!, turn: 1 }, '1')).toBe('kept')
      expect(await job(bad!)).toMatchObject({ id: bad })
      expect(await command({ kind: 'replay', id: bad! })).toBe(false)
      await dead()
      if (where === 'leased') {
        expect(await finish({ id: bad!, turn: 1 }, { kind: 'failed' })).toBe('dead')
        expect(await finish({ id: bad!, turn: 1 }, { kind: 'failed' })).toBe('dead')
      }
      await fleet.sleep(250)
      const good = await add()
      expect((await reserve(5)).jobs.map(({ id }) => id)).toEqual([good])
      const isKept = where === 'delayed' || where === 'leased'
      expect(await counts()).toMatchObject({
        delayed: 0,
        active: 1,
        waiting: 0,
        dead: isKept ? 1 : 0,
      })
    },
  )

  it('a waiting job with a damaged record can be cancelled', async () => {
    const { ref, addMany, command, counts, reserve } = createQueueKit(fleet)
    const [bad, good] = await addMany([{}, {}])
    await damage(ref, bad!, "packed = 'x'")
    expect(await command({ kind: 'cancel', id: bad!, keepUs: SECOND })).toBe(true)
    expect(await counts()).toMatchObject({ waiting: 1, dead: 1 })
    expect((await reserve(2)).jobs.map(({ id }) => id)).toEqual([good])
  })
})

describe('a queue with a key of the wrong type', () => {
  const PARTS = ['m', 'w', 'z', 'l', 'e', 'x', 'p', 'j', 'd', 'r', 'k', 't', 'n']

  it.each(PARTS)('a key of the wrong type only loses its own content: %s', async (part) => {
    const { ref, addMany, reserve, finish, extend, counts, dead } = createQueueKit(fleet)
    await addMany(
      Array.from({ length: 4 }, (_, at) => ({ priority: at, tenant: 't', key: `k${at}` })),
    )
    const [running] = (await reserve(1, { leaseUs: SECOND / 5 })).jobs
    const key = keyOf(ref, part)
    await fleet.send('DEL', key)
    await fleet.send('RPUSH', key, 'what is this')
    await counts()
    await dead()
    await extend(running!, '1')
    await finish(running!)
    await fleet.sleep(250)
    await reserve(10)
    const ids = await addMany([{ tenant: 'new' }, { tenant: 'new' }])
    const taken = (await reserve(10)).jobs.map(({ id }) => id)
    expect(taken).toEqual(expect.arrayContaining(ids))
  })

  it.each(PARTS)(
    'a repaired job queue adds no job twice and runs all that were added: %s',
    async (part) => {
      const name = `twice-${part}`
      const spillway = createSpillway({ store: fleet.store(), pod: 'p' })
      onTestFinished(() => spillway.close({ graceMs: 0 }))
      spillway.guard(name, {})
      const queue = spillway.jobQueue<string>('q', { guard: name, attempts: 1, leaseMs: 200 })
      await queue.add('before')
      const key = keyOf({ guard: name, queue: 'q' }, part)
      await fleet.send('DEL', key)
      await fleet.send('RPUSH', key, 'what is this')
      const batch = (label: string) => [
        { data: `${label} plain` },
        { data: `${label} tenant`, tenant: 't' },
        { data: `${label} long`.padEnd(600) },
        { data: `${label} key`, key: label },
        { data: `${label} delayed`, delayMs: 10 },
        { data: `${label} last` },
      ]
      await queue.addMany(batch('first')).catch(() => {})
      // Every script reads the key before the second batch is added.
      const done: unknown[] = []
      queue.work(async ({ data }) => void done.push(data), { concurrency: 2 })
      await vi.waitUntil(
        async () => {
          const { waiting, delayed, active } = await queue.counts()
          return waiting + delayed + active === 0
        },
        { timeout: 5_000 },
      )
      await queue.addMany(batch('second'))
      const second = () => done.filter((data) => String(data).startsWith('second'))
      await vi.waitUntil(() => second().length === 6, { timeout: 5_000 })
      expect(done).toHaveLength(new Set(done).size)
      expect(done).not.toContain(null)
    },
  )

  it.each(['l', 't'])('jobs that could not be leased are not lost: %s', async (part) => {
    const { ref, addMany, reserve, counts } = createQueueKit(fleet)
    const ids = await addMany([{ tenant: 't' }, { tenant: 't' }])
    await fleet.send('DEL', keyOf(ref, part))
    await fleet.send('RPUSH', keyOf(ref, part), 'what is this')
    expect((await reserve(2)).jobs.map(({ id }) => id)).toEqual(ids)
    expect(await counts()).toMatchObject({ waiting: 0, active: 2 })
  })

  it('each job whose long data was lost becomes a dead letter', async () => {
    const name = 'long-data'
    const spillway = createSpillway({ store: fleet.store(), pod: 'p' })
    onTestFinished(() => spillway.close({ graceMs: 0 }))
    spillway.guard(name, {})
    const queue = spillway.jobQueue<string>('q', { guard: name })
    const { id } = await queue.add('long'.padEnd(600))
    await queue.add('short')
    await fleet.send('DEL', keyOf({ guard: name, queue: 'q' }, 'd'))
    const done: unknown[] = []
    queue.work(async ({ data }) => void done.push(data))
    await vi.waitUntil(async () => (await queue.counts()).dead === 1, { timeout: 5_000 })
    await vi.waitUntil(() => done.length === 1, { timeout: 5_000 })
    expect(done).toEqual(['short'])
    expect(await queue.dead()).toMatchObject([
      { id, error: expect.stringContaining('invalid job data') },
    ])
  })

  it('a job whose lease a failed script had begun is still returned', async () => {
    const { ref, addMany, reserve, counts, dead } = createQueueKit(fleet)
    // Long data is read from its own key after the lease was written.
    const [id] = await addMany([{ tenant: 't', data: JSON.stringify('x'.repeat(2_000)) }])
    await fleet.send('DEL', keyOf(ref, 'd'))
    await fleet.send('RPUSH', keyOf(ref, 'd'), 'what is this')
    await reserve(1, { leaseUs: SECOND / 5 })
    await fleet.sleep(250)
    const taken = (await reserve(1)).jobs.map((job) => job.id)
    const letters = (await dead()).map((job) => job.id)
    expect([...taken, ...letters]).toEqual([id])
    expect((await counts()).waiting).toBe(0)
  })

  it('a job queue whose first key is damaged or lost recounts its jobs and hands all of them out', async () => {
    for (const damaged of ['', 'x'.repeat(26 * 8), undefined]) {
      const { ref, addMany, reserve, counts } = createQueueKit(fleet)
      const ids = await addMany([{ priority: 3 }, { priority: 0 }, { delayUs: SECOND / 10 }])
      if (damaged === undefined) await fleet.send('DEL', keyOf(ref, 'm'))
      else await fleet.send('SET', keyOf(ref, 'm'), damaged)
      expect(await counts()).toMatchObject({ waiting: 2, delayed: 1 })
      await fleet.sleep(150)
      const taken = (await reserve(5)).jobs.map(({ id }) => id)
      expect(taken.sort()).toEqual([...ids].sort())
    }
  })
})

describe.each<[string, () => Fleet]>([
  ['memory', createMemoryFleet],
  ['Redis', () => fleet],
])('a payload that is no JSON (%s)', (_, fleetOf) => {
  it('a payload that is not JSON becomes one readable dead letter, and the worker continues', async () => {
    const own = fleetOf()
    const { ref, store, addMany } = createQueueKit(own)
    const spillway = createSpillway({ store, clock: own.clock, pod: 'p' })
    onTestFinished(() => own.until(spillway.close({ graceMs: 0 })))
    spillway.guard(ref.guard, {})
    const queue = spillway.jobQueue<number>(ref.queue, { guard: ref.guard })
    const long = 'no JSON '.repeat(200)
    await addMany(['{"cut":', '1', '', 'undefined', long, '2'].map((data) => ({ data })))
    const done: number[] = []
    queue.work(async ({ data }) => void done.push(data), { concurrency: 1 })
    for (let tries = 0; tries < 500 && done.length < 2; tries++) await own.sleep(10)
    for (let tries = 0; tries < 500; tries++) {
      if ((await own.until(queue.counts())).dead === 4) break
      await own.sleep(10)
    }
    expect(done).toEqual([1, 2])
    const letters = await own.until(queue.dead())
    expect(letters.map(({ data }) => data)).toEqual(['{"cut":', undefined, 'undefined', long])
    expect(letters[0]).toMatchObject({ error: expect.stringContaining('invalid job data') })
    expect(await own.until(queue.job(letters[0]!.id))).toMatchObject({ state: 'dead' })
  })
})
