import { describe, expect, it, vi } from 'vitest'
import { fc } from '../../../test/fast-check.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { TimerList } from './timer-list.js'

describe('TimerList', () => {
  it('timer list fires each timer at its own time and in order', async () => {
    const clock = createVirtualClock()
    const list = new TimerList(clock, 100)
    const fired: string[] = []
    list.schedule(100, () => fired.push(`a@${clock.now()}`))
    await clock.advance(30)
    list.schedule(100, () => fired.push(`b@${clock.now()}`))
    list.schedule(10, () => fired.push(`other delay@${clock.now()}`))
    await clock.advance(200)
    expect(fired).toEqual(['other delay@40', 'a@100', 'b@130'])
  })

  it('timer list uses one clock timer for any number of timers', () => {
    const clock = createVirtualClock()
    const schedule = vi.spyOn(clock, 'schedule')
    const list = new TimerList(clock, 100)
    for (let i = 0; i < 1_000; i++) list.schedule(100, () => {})
    expect(schedule).toHaveBeenCalledOnce()
  })

  it('timer list with keepsAlive: false never keeps the process alive', () => {
    const clock = createVirtualClock()
    const list = new TimerList(clock, 100, { keepsAlive: false })
    list.schedule(100, () => {}).cancel()
    list.schedule(100, () => {})
    expect(clock.pending).toBe(0)
  })

  it('an empty timer list does not keep the process alive', async () => {
    const clock = createVirtualClock()
    const list = new TimerList(clock, 100)
    const entry = list.schedule(100, () => {})
    expect(clock.pending).toBe(1)
    entry.cancel()
    await clock.settle()
    expect(clock.pending).toBe(0)
    list.schedule(100, () => {})
    expect(clock.pending).toBe(1)
    list.close()
    expect(clock.pending).toBe(0)
  })

  it('a timer may add another timer to its list while it fires', async () => {
    const clock = createVirtualClock()
    const list = new TimerList(clock, 100)
    const fired: number[] = []
    list.schedule(100, () => {
      fired.push(clock.now())
      list.schedule(100, () => fired.push(clock.now()))
    })
    await clock.drain()
    expect(fired).toEqual([100, 200])
  })

  it('timer list fires the remaining timers when one of them throws', async () => {
    const clock = createVirtualClock()
    const list = new TimerList(clock, 100)
    const fired: string[] = []
    list.schedule(100, () => {
      throw new Error('no')
    })
    list.schedule(100, () => fired.push('beside it'))
    await expect(clock.advance(100)).rejects.toThrow('no')
    list.schedule(100, () => fired.push('later'))
    await clock.advance(200)
    expect(fired).toEqual(['beside it', 'later'])
  })

  it('timer list behaves like single timers under random adding, cancelling and waiting', async () => {
    const step = fc.oneof(
      fc.constant({ kind: 'add' as const }),
      fc.record({ kind: fc.constant('cancel' as const), which: fc.nat(20) }),
      fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 70 }) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const clock = createVirtualClock()
        const list = new TimerList(clock, 50)
        const fired: string[] = []
        const expected: string[] = []
        const entries: { cancel(): void }[] = []
        for (const each of steps) {
          if (each.kind === 'wait') await clock.advance(each.ms)
          else if (each.kind === 'cancel') entries[each.which]?.cancel()
          else {
            const id = entries.length
            const listed = list.schedule(50, () => fired.push(`${id}@${clock.now()}`))
            const single = clock.schedule(50, () => expected.push(`${id}@${clock.now()}`))
            entries.push({
              cancel: () => {
                listed.cancel()
                single.cancel()
              },
            })
          }
        }
        await clock.drain()
        expect(fired).toEqual(expected)
        expect(clock.pending).toBe(0)
      }),
      { numRuns: 100 },
    )
  })
})
