import { describe, expect, it } from 'vitest'
import { fc } from '../../test/fast-check.js'
import { sleep } from '../core/time/sleep.js'
import { createRandom } from './index.js'
import { createVirtualClock } from './virtual-clock.js'

describe('virtual clock', () => {
  it('virtual clock fires timers in order of due time, then of scheduling', async () => {
    const clock = createVirtualClock()
    const fired: string[] = []
    clock.schedule(20, () => fired.push('c'))
    clock.schedule(10, () => fired.push('a'))
    clock.schedule(10, () => fired.push('b'))
    await clock.advance(20)
    expect(fired).toEqual(['a', 'b', 'c'])
    expect(clock.now()).toBe(20)
  })

  it('pollTurn() takes no time and runs after timers already due', async () => {
    const clock = createVirtualClock()
    const fired: string[] = []
    clock.schedule(10, () => {
      clock.pollTurn(() => fired.push(`turn at ${clock.now()}`))
      fired.push('timer')
    })
    clock.schedule(10, () => fired.push('other timer'))
    await clock.advance(10)
    expect(fired).toEqual(['timer', 'other timer', 'turn at 10'])
  })

  it('virtual clock lets every promise settle before the next timer fires', async () => {
    const clock = createVirtualClock()
    const log: string[] = []
    const chain = async (name: string) => {
      await sleep(clock, 10)
      for (let i = 0; i < 50; i++) await Promise.resolve()
      await new Promise<void>((resolve) => process.nextTick(resolve))
      log.push(name)
    }
    void chain('first')
    void sleep(clock, 10).then(() => log.push('second'))
    await clock.advance(10)
    expect(log).toEqual(['first', 'second'])
  })

  it('virtual clock fires no cancelled timer and none early', async () => {
    const clock = createVirtualClock()
    const fired: string[] = []
    const cancelled = clock.schedule(5, () => fired.push('cancelled'))
    clock.schedule(11, () => fired.push('late'))
    cancelled.cancel()
    cancelled.cancel()
    await clock.advance(10)
    expect(fired).toEqual([])
    expect(clock.pending).toBe(1)
  })

  it('until() advances as far as a promise needs and returns its value or error', async () => {
    const clock = createVirtualClock()
    await expect(clock.until(sleep(clock, 3_600_000).then(() => 'done'))).resolves.toBe('done')
    expect(clock.now()).toBe(3_600_000)
    const failing = sleep(clock, 1).then(() => Promise.reject(new Error('no')))
    await expect(clock.until(failing)).rejects.toThrow('no')
  })

  it('until() rejects when a promise can never settle', async () => {
    const clock = createVirtualClock()
    await expect(clock.until(new Promise(() => {}))).rejects.toThrow('never settles')
    const tick = () => clock.schedule(10, tick).unref()
    tick()
    await expect(clock.until(new Promise(() => {}))).rejects.toThrow('never settles')
  })

  it('virtual clock rejects a negative or invalid advance', async () => {
    const clock = createVirtualClock()
    await expect(clock.advance(-5)).rejects.toThrow('must be a finite number of at least 0, got -5')
    await expect(clock.advance(Number.NaN)).rejects.toThrow('NaN')
  })

  it('`pending` counts the timers that would keep a process alive', () => {
    const clock = createVirtualClock()
    const timer = clock.schedule(10, () => {})
    expect(clock.pending).toBe(1)
    timer.unref()
    timer.unref()
    expect(clock.pending).toBe(0)
    timer.ref()
    expect(clock.pending).toBe(1)
    timer.cancel()
    timer.ref()
    expect(clock.pending).toBe(0)
  })

  it('wall time advances with the virtual clock', async () => {
    const clock = createVirtualClock({ startMs: 500, wallMs: Date.UTC(2031, 5, 1) })
    await clock.advance(1_000)
    expect(new Date(clock.wallMs()).toISOString()).toBe('2031-06-01T00:00:01.000Z')
  })

  it('virtual clock gives the same history every time', async () => {
    const history = async () => {
      const clock = createVirtualClock()
      const random = createRandom(42)
      const log: string[] = []
      const walker = async (name: number) => {
        for (let i = 0; i < 20; i++) {
          await sleep(clock, random() * 100)
          log.push(`${name}@${clock.now()}`)
        }
      }
      await clock.until(Promise.all(Array.from({ length: 10 }, (_, name) => walker(name))))
      return log
    }
    expect(await history()).toEqual(await history())
  })

  it('timers fire in sorted order under random scheduling and cancelling', async () => {
    const timers = fc.array(fc.record({ delayMs: fc.nat(50), cancel: fc.boolean() }))
    await fc.assert(
      fc.asyncProperty(timers, async (plan) => {
        const clock = createVirtualClock()
        const fired: number[] = []
        const armed = plan.map(({ delayMs }, id) => clock.schedule(delayMs, () => fired.push(id)))
        for (const [id, { cancel }] of plan.entries()) if (cancel) armed[id]?.cancel()
        await clock.drain()
        const kept = plan.map((each, id) => ({ ...each, id })).filter(({ cancel }) => !cancel)
        kept.sort((one, other) => one.delayMs - other.delayMs || one.id - other.id)
        expect(fired).toEqual(kept.map(({ id }) => id))
      }),
    )
  })
})

describe('createRandom', () => {
  it('random numbers repeat with the seed, differ between seeds and are uniform', () => {
    const numbers = (seed: number) => Array.from({ length: 10_000 }, createRandom(seed))
    expect(numbers(1)).toEqual(numbers(1))
    expect(numbers(1)).not.toEqual(numbers(2))
    const mean = numbers(7).reduce((sum, each) => sum + each, 0) / 10_000
    expect(mean).toBeCloseTo(0.5, 1)
    expect(Math.min(...numbers(7))).toBeGreaterThanOrEqual(0)
    expect(Math.max(...numbers(7))).toBeLessThan(1)
  })
})
