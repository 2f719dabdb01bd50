import { describe, expect, it, vi } from 'vitest'
import { TestCall } from '../../../test/queued-test-call.js'
import { PRIORITIES, type Priority } from '../../core/options/priority.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { CallQueue, type CallQueueOptions } from './call-queue.js'
import type { LeaveReason } from './queued-call.js'

type About = Partial<Pick<TestCall, 'lane' | 'arrivedMs' | 'deadlineMs'>> & {
  priority?: Priority
  onLeave?(why: LeaveReason): void
}

function setup(options: Partial<CallQueueOptions> = {}) {
  const clock = createVirtualClock()
  const limits = { size: 100, timeoutMs: 5_000, targetMs: 500, agingMs: 2_500 }
  const queue = new CallQueue({ clock, ...limits, ...options })
  const join = ({ priority = 'normal', ...about }: About = {}, spare = 0) => {
    const nowMs = clock.now()
    const call = new TestCall({
      arrivedMs: nowMs,
      ...about,
      priority: PRIORITIES.indexOf(priority),
    })
    return queue.join(call, nowMs, spare) ? call : undefined
  }
  return { clock, queue, join }
}

describe('state of the queue', () => {
  it('the queue is full at its size, and calls that can start at once are accepted beyond it', () => {
    const { queue, join } = setup({ size: 2 })
    const normal = PRIORITIES.indexOf('normal')
    join()
    expect([queue.full, queue.hasPlace(normal, 0)]).toEqual([false, true])
    join()
    expect([queue.full, queue.hasPlace(normal, 0), queue.hasPlace(normal, 1)]).toEqual([
      ...[true, false, true],
    ])
    expect(queue.hasPlace(PRIORITIES.indexOf('high'), 0)).toBe(true)
  })

  it('the only lane is known while all waiting calls share one', () => {
    const { queue, join } = setup()
    expect(queue.onlyLane).toBeUndefined()
    const one = join({ lane: 'a' }) as TestCall
    expect(queue.onlyLane).toBe('a')
    join({ lane: 'b' })
    expect(queue.onlyLane).toBeUndefined()
    queue.remove(one)
    expect(queue.onlyLane).toBe('b')
  })

  it('calls of a lane are counted and listed, and an unknown lane has none', () => {
    const { queue, join } = setup()
    expect(queue.lengthOf('a')).toBe(0)
    const one = join({ lane: 'a' })
    const other = join({ lane: 'a' })
    join({ lane: 'b' })
    expect([queue.lengthOf('a'), queue.lengthOf('b'), queue.lengthOf('c')]).toEqual([2, 1, 0])
    expect(queue.list('a')).toEqual([one, other])
    expect(queue.list('c')).toEqual([])
    expect(queue.next('a', 0)).toBe(one)
    expect(queue.next('c', 0)).toBeUndefined()
    expect(queue.take('c', 0)).toBeUndefined()
  })

  it('a standing queue drops a call when a drop is due, and not with each call served', async () => {
    const { clock, queue, join } = setup({ targetMs: 100 })
    const dropped: LeaveReason[] = []
    for (let i = 0; i < 8; i++) join({ onLeave: (why) => dropped.push(why) })
    await clock.advance(100)
    queue.take('default', clock.now())
    await clock.advance(100)
    for (let i = 0; i < 3; i++) queue.take('default', clock.now())
    expect([queue.standing, dropped]).toEqual([true, ['overload']])
  })

  it('a call leaves at its deadline, whatever the time when it joins', async () => {
    const { clock, join } = setup({ timeoutMs: 5_000 })
    await clock.advance(1_000)
    const left: [LeaveReason, number][] = []
    const leave = (why: LeaveReason) => left.push([why, clock.now()])
    join({ deadlineMs: 1_300, onLeave: leave })
    join({ deadlineMs: 6_000, onLeave: leave })
    join({ deadlineMs: 6_001, onLeave: leave })
    await clock.advance(10_000)
    expect(left.sort((one, other) => one[1] - other[1])).toEqual([
      ['deadline', 1_300],
      ['deadline', 6_000],
      ['timeout', 6_000],
    ])
  })

  it('a wait of a lane without calls is ignored', () => {
    const { queue } = setup()
    queue.excludeWait('unknown', 1_000)
    expect(queue.lengthOf('unknown')).toBe(0)
  })

  it('the queue is standing when one of its lanes is', async () => {
    const { clock, queue, join } = setup({ targetMs: 100 })
    join({ lane: 'quick' })
    for (let i = 0; i < 4; i++) join({ lane: 'slow' })
    await clock.advance(100)
    queue.take('slow', clock.now())
    expect(queue.standing).toBe(false)
    await clock.advance(100)
    queue.take('slow', clock.now())
    expect(queue.standing).toBe(true)
  })

  it('a queue with an infinite target is never standing', async () => {
    const { clock, queue, join } = setup({ targetMs: Number.POSITIVE_INFINITY, intervalMs: 1 })
    for (let i = 0; i < 4; i++) join()
    await clock.advance(2_000)
    queue.take('default', clock.now())
    await clock.advance(2_000)
    queue.take('default', clock.now())
    expect(queue.standing).toBe(false)
  })

  it('take() returns no call if the last one of the lane is dropped', async () => {
    const { clock, queue, join } = setup({ targetMs: 100 })
    const dropped: LeaveReason[] = []
    join()
    join({ onLeave: (why) => dropped.push(why) })
    await clock.advance(100)
    queue.take('default', clock.now())
    await clock.advance(100)
    expect(queue.take('default', clock.now())).toBeUndefined()
    expect([queue.length, dropped]).toEqual([0, ['overload']])
  })

  it('a call that was put back leaves its lane when it is removed', () => {
    const { queue, join } = setup()
    const call = join() as TestCall
    queue.take('default', 0)
    queue.putBack(call)
    queue.remove(call)
    expect([queue.length, queue.lengthOf('default')]).toEqual([0, 0])
  })

  it('a call that is removed twice does not cancel the timeout of another one', async () => {
    const { clock, queue, join } = setup()
    const left: LeaveReason[] = []
    const removed = join() as TestCall
    join({ onLeave: (why) => left.push(why) })
    queue.remove(removed)
    queue.remove(removed)
    await clock.advance(5_000)
    expect(left).toEqual(['timeout'])
  })

  it('a call that joins while another one times out gets its whole timeout', async () => {
    const { clock, join } = setup()
    const left: number[] = []
    join({ onLeave: () => join({ onLeave: () => left.push(clock.now()) }) })
    await clock.advance(5_000)
    expect(clock.pending).toBe(1)
    await clock.advance(20_000)
    expect(left).toEqual([10_000])
    expect(clock.pending).toBe(0)
  })

  it('only deadlines before the queue timeout, and finite timeouts, have a timer', () => {
    const { clock, join } = setup()
    join({ deadlineMs: 7_000 })
    expect(clock.pending).toBe(1)
    const endless = setup({ timeoutMs: Number.POSITIVE_INFINITY })
    const call = endless.join() as TestCall
    expect(endless.clock.pending).toBe(0)
    endless.queue.remove(call)
    expect(endless.queue.length).toBe(0)
  })

  it('the best lane is the first one listed, if the next calls have equal rank and age', async () => {
    const { clock, queue, join } = setup()
    join({ lane: 'a' })
    join({ lane: 'b' })
    join({ lane: 'c', priority: 'low' })
    expect(queue.bestOf(['c', 'b', 'a'], clock.now())).toBe('b')
    expect(queue.bestOf(['a', 'b', 'c'], clock.now())).toBe('a')
    await clock.advance(10)
    join({ lane: 'd' })
    expect(queue.bestOf(['d', 'a'], clock.now())).toBe('a')
  })
})

describe('longest wait in the queue', () => {
  it.each([5_000, Number.POSITIVE_INFINITY])(
    'the longest wait is that of all lanes or of some, with a queue timeout of %d ms',
    async (timeoutMs) => {
      const { clock, queue, join } = setup({ timeoutMs })
      expect(queue.oldestWaitMs(clock.now())).toBe(0)
      join({ lane: 'a' })
      await clock.advance(100)
      join({ lane: 'b' })
      await clock.advance(50)
      expect(queue.oldestWaitMs(clock.now())).toBe(150)
      expect(queue.oldestWaitMs(clock.now(), (lane) => lane === 'a')).toBe(150)
      expect(queue.oldestWaitMs(clock.now(), (lane) => lane === 'b')).toBe(50)
      expect(queue.oldestWaitMs(clock.now(), () => false)).toBe(0)
      expect(queue.oldestWaitMs(-1)).toBe(0)
      queue.close()
      expect(clock.pending).toBe(0)
    },
  )
})

it('the longest wait includes calls on a permit round trip if there is a queue timeout', async () => {
  const { clock, queue, join } = setup()
  join()
  queue.take('default', clock.now())
  await clock.advance(100)
  expect(queue.oldestWaitMs(clock.now())).toBe(100)
  expect(queue.oldestWaitMs(clock.now(), () => true)).toBe(100)
})

describe('calls that give up', () => {
  it('calls that give up before a time are found, also after others have left', async () => {
    const { clock, queue, join } = setup()
    const first = join() as TestCall
    await clock.advance(1_000)
    const hurried = join({ deadlineMs: 4_000 })
    join()
    const before = (untilMs: number) => queue.givingUpBefore('default', untilMs)
    expect(before(4_000)).toEqual([])
    expect(before(4_001)).toEqual([hurried])
    expect(before(5_001)).toEqual([first, hurried])
    expect(before(5_000)).toEqual([hurried])
    queue.remove(hurried as TestCall)
    expect(before(4_500)).toEqual([])
    expect(before(5_001)).toEqual([first])
    expect(queue.givingUpBefore('unknown', 1e9)).toEqual([])
  })

  it('a call that may not wait gives up at once', () => {
    const { queue, join } = setup()
    const call = join() as TestCall
    expect(queue.giveUpMs(call)).toBe(5_000)
    vi.spyOn(call, 'mayWait', 'get').mockReturnValue(false)
    expect(queue.giveUpMs(call)).toBe(Number.NEGATIVE_INFINITY)
  })

  it('a call that may not expire stays in the queue after its deadline', async () => {
    const { clock, queue, join } = setup()
    const onLeave = vi.fn()
    const call = join({ deadlineMs: 100, onLeave }) as TestCall
    vi.spyOn(call, 'mayExpire').mockReturnValue(false)
    await clock.advance(1_000)
    expect(queue.length).toBe(1)
    await clock.advance(4_000)
    // The queue timeout ends its wait; its deadline passed before that.
    expect(onLeave.mock.calls).toEqual([['deadline']])
  })

  it('a call without a deadline leaves at the queue timeout, and a removed one never', async () => {
    const { clock, queue, join } = setup()
    const onLeave = vi.fn()
    join({ onLeave })
    const removed = join({ onLeave: () => onLeave('removed') }) as TestCall
    queue.remove(removed)
    queue.dismiss(removed, 'overload')
    await clock.advance(5_000)
    expect(onLeave.mock.calls).toEqual([['timeout']])
    expect(queue.length).toBe(0)
  })

  it('the newest of the least important calls of all lanes is evicted', async () => {
    const { clock, join } = setup({ size: 3 })
    const left: string[] = []
    const low = (lane: string) =>
      join({ lane, priority: 'low', onLeave: (why) => left.push(`${lane} ${why}`) })
    low('a')
    await clock.advance(1)
    low('b')
    low('c')
    join()
    expect(left).toEqual(['b displaced'])
  })

  it('a lane without calls of the lowest priority loses none', () => {
    const { queue, join } = setup({ size: 2 })
    const left: LeaveReason[] = []
    join({ lane: 'a', priority: 'low', onLeave: (why) => left.push(why) })
    join({ lane: 'b' })
    join({ priority: 'high' })
    expect(left).toEqual(['displaced'])
    expect([queue.lengthOf('a'), queue.lengthOf('b')]).toEqual([0, 1])
  })
})
