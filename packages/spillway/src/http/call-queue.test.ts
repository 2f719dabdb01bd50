import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, it } from 'vitest'
import { SpillwayError } from '../core/errors.js'
import { createDeadline, runWithDeadline } from '../core/time/deadline.js'
import { sleep } from '../core/time/sleep.js'
import { createVirtualClock } from '../testing/virtual-clock.js'
import { createCallQueue, type StandaloneCallQueueOptions } from './call-queue.js'

function setup(options: Partial<StandaloneCallQueueOptions> = {}) {
  const clock = createVirtualClock()
  const queue = createCallQueue({ limit: 1, size: 100, clock, ...options })
  const ends: string[] = []
  const send = (name: string, ms = 10, run: Parameters<typeof queue.run>[1] = {}) =>
    queue
      .run(() => sleep(clock, ms), run)
      .then(
        () => void ends.push(name),
        (error) => {
          ends.push(`${name}: ${error instanceof SpillwayError ? error.code : String(error)}`)
        },
      )
  return { clock, queue, ends, send }
}

describe('call queue of a server', () => {
  it('at most limit calls run at once, and the others follow by priority and age', async () => {
    const { clock, queue, ends, send } = setup()
    send('first')
    send('low', 10, { priority: 'low' })
    send('normal')
    send('critical', 10, { priority: 'critical' })
    expect(queue.snapshot()).toMatchObject({
      active: 1,
      limit: 1,
      waiting: 3,
      byPriority: { critical: 1, high: 0, normal: 1, low: 1 },
      standing: false,
    })
    await clock.advance(100)
    expect(ends).toEqual(['first', 'critical', 'normal', 'low'])
    expect(queue.snapshot()).toMatchObject({ active: 0, waiting: 0, oldestMs: 0 })
  })

  it('standing queue serves the newest call first and drops the oldest with SHED', async () => {
    const { clock, queue, ends, send } = setup({ targetMs: 50, intervalMs: 100, timeoutMs: '1m' })
    for (let call = 0; call < 60; call++) send(`old ${call}`)
    await clock.advance(200)
    expect(queue.snapshot().standing).toBe(true)
    ends.length = 0
    send('new')
    await clock.advance(25)
    expect(ends).toContain('new')
    expect(ends.indexOf('new')).toBeLessThanOrEqual(2)
    await clock.advance(1_000)
    expect(ends.filter((end) => end.endsWith('SHED')).length).toBeGreaterThan(0)
  })

  it('full queue refuses with QUEUE_FULL, and a call that waits too long gets QUEUE_TIMEOUT', async () => {
    const { clock, ends, send } = setup({ size: 1, timeoutMs: 100 })
    send('runs', 500)
    send('waits')
    send('refused')
    await clock.advance(150)
    expect(ends).toEqual(['refused: QUEUE_FULL', 'waits: QUEUE_TIMEOUT'])
  })

  it('abort and deadline end a wait, and a failed call frees its slot', async () => {
    const { clock, queue, ends, send } = setup()
    const leave = new AbortController()
    const failing = queue.run(async () => {
      await sleep(clock, 100)
      throw new Error('broken')
    })
    failing.catch(() => ends.push('failed'))
    send('aborted', 10, { signal: leave.signal })
    runWithDeadline(createDeadline(50, clock), () => send('late'))
    send('served')
    leave.abort('gone')
    await clock.advance(200)
    expect(ends).toEqual(['aborted: gone', 'late: DEADLINE_EXCEEDED', 'failed', 'served'])
  })

  it('call whose deadline has passed is refused although a slot is free', async () => {
    const { clock, queue, ends, send } = setup()
    const deadline = createDeadline(50, clock)
    await clock.advance(60)
    runWithDeadline(deadline, () => send('late'))
    await clock.advance(20)
    expect(ends).toEqual(['late: DEADLINE_EXCEEDED'])
    expect(queue.snapshot().active).toBe(0)
  })

  it('function that throws synchronously rejects the call and frees its slot', async () => {
    const { clock, queue } = setup()
    const thrown = queue.run(() => {
      throw new Error('at once')
    })
    await expect(thrown).rejects.toThrow('at once')
    expect(await clock.until(queue.run(() => 'next'))).toBe('next')
  })

  it('waiting call runs in the async context of its caller', async () => {
    const { clock, queue, send } = setup()
    const storage = new AsyncLocalStorage<string>()
    storage.run('first caller', () => send('first'))
    const seen = storage.run('second caller', () => queue.run(() => storage.getStore()))
    expect(await clock.until(seen)).toBe('second caller')
  })

  it('closed queue refuses waiting and later calls, and running calls end', async () => {
    const { clock, queue, ends, send } = setup()
    send('runs')
    send('waits')
    queue.close()
    send('late')
    await clock.advance(50)
    expect(ends.sort()).toEqual(['late: SHUTTING_DOWN', 'runs', 'waits: SHUTTING_DOWN'])
  })

  it('options of a call queue are validated with their path', () => {
    expect(() => createCallQueue({ limit: 0, size: 1 })).toThrow(/callQueue\.limit/)
    const misspelt = { limit: 1, size: 1, intervallMs: 5 }
    expect(() => createCallQueue(misspelt)).toThrow(/did you mean 'intervalMs'/)
  })
})
