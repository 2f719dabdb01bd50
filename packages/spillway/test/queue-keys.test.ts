/** What is kept of a queue in Redis: whose it is, how long it stays, and what becomes of it when a part is lost. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createRedisFleet } from './limit-claims/fleet.js'
import { createQueueKit, SECOND } from './queue-claims/queue-kit.js'

const JOB = { data: '{}', priority: 2, deadlineUs: 0, key: '', tenant: '', cost: {}, attempts: 3 }

const fleet = createRedisFleet()
beforeAll(() => fleet.start())
afterAll(() => fleet.stop())

describe('a queue that another build keeps in another form', () => {
  it('is left alone, and does not keep this one from its own', async () => {
    const { add, reserve, ref } = createQueueKit(fleet)
    const theirs = `sw1:{${ref.guard}}:j:${ref.queue}:m`
    await fleet.send('SET', theirs, 'as it was kept before')
    const id = await add()
    expect((await reserve()).jobs).toMatchObject([{ id }])
    expect(await fleet.send('GET', theirs)).toBe('as it was kept before')
  })
})

describe('how long a queue stays, where pods say different things', () => {
  /** When each of its keys ends; nothing, if they differ. */
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
    const add = (lifeUs: number) => store.queues.add({ ...ref, lifeUs, jobs, maxSize: 100 })
    return { ...rest, ref, add }
  }

  it('all of it stays for the longer life of whoever adds, at once', async () => {
    const { ref, add } = kitOf()
    await add(3_600 * SECOND)
    const before = (await endMs(ref.guard)) as number
    const month = 30 * 86_400
    await add(month * SECOND)
    const after = (await endMs(ref.guard)) as number
    expect(before).toBeLessThan(after)
    expect(after).toBeGreaterThanOrEqual(Date.now() + month * 1_000)
  })

  it('nobody shortens it, not even with what is renewed', async () => {
    const { ref, add } = kitOf()
    await add(10 * SECOND)
    const before = (await endMs(ref.guard)) as number
    // A tenth of its life later it is renewed, by whoever comes.
    await fleet.sleep(1_100)
    await add(2 * SECOND)
    expect(await endMs(ref.guard)).toBe(before)
  })
})
