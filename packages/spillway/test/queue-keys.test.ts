/** What is kept of a queue in Redis: whose it is, how long it stays, and what becomes of it when a part is lost. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createRedisFleet } from './limit-claims/fleet.js'
import { createQueueKit } from './queue-claims/queue-kit.js'

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
