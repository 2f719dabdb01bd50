import { describe, expect, it } from 'vitest'
import { TestCall } from '../../../test/queued-test-call.js'
import { PRIORITIES, type Priority } from '../../core/options/priority.js'
import { LaneQueue } from './lane-queue.js'

function setup() {
  const lane = new LaneQueue('default', { targetMs: 100, agingMs: 1_000 })
  let order = 0
  const insert = (arrivedMs: number, priority: Priority = 'normal', joinedMs = arrivedMs) => {
    const call = new TestCall({ arrivedMs, priority: PRIORITIES.indexOf(priority) })
    call.join(order++, joinedMs)
    lane.insert(call, joinedMs + 5_000)
    return call
  }
  return { lane, insert }
}

describe('queue of one lane', () => {
  it('the earliest time at which a call gives up is kept', () => {
    const { lane, insert } = setup()
    expect(lane.earliestGiveUpMs).toBe(Number.POSITIVE_INFINITY)
    insert(20)
    insert(10)
    insert(30)
    expect(lane.earliestGiveUpMs).toBe(5_010)
  })

  it('the length counts calls that were inserted and neither taken nor removed', () => {
    const { lane, insert } = setup()
    const [first, second] = [insert(0), insert(1)]
    insert(2)
    expect(lane.length).toBe(3)
    lane.take(first)
    expect(lane.length).toBe(2)
    second.state = 'gone'
    lane.forget(second)
    expect(lane.length).toBe(1)
  })

  it('calls are listed by priority, then by age', () => {
    const { lane, insert } = setup()
    const low = insert(0, 'low')
    const late = insert(9)
    const early = insert(5)
    const critical = insert(7, 'critical')
    expect(lane.list()).toEqual([critical, early, late, low])
  })

  it('an empty lane has no next call, no call to drop and no wait', () => {
    const { lane } = setup()
    expect(lane.next(0)).toBeUndefined()
    expect(lane.nextDrop).toBeUndefined()
    expect(lane.oldestJoinedMs).toBe(Number.POSITIVE_INFINITY)
    expect(lane.standingDelayMs(1_000)).toBe(Number.NEGATIVE_INFINITY)
  })

  it('each full agingMs makes up for one step of priority', () => {
    const { lane, insert } = setup()
    const low = insert(0, 'low')
    expect([0, 999, 1_000, 3_000].map((nowMs) => lane.rank(low, nowMs))).toEqual([3, 3, 2, 0])
  })

  it('the older one of two calls with equal rank is next', () => {
    const { lane, insert } = setup()
    const normal = insert(500)
    const low = insert(0, 'low')
    expect(lane.next(999)).toBe(normal)
    expect(lane.next(1_000)).toBe(low)
  })

  it('a call that has aged to a better rank goes before a newer call of higher priority', () => {
    const { lane, insert } = setup()
    insert(1_500)
    const low = insert(0, 'low')
    expect(lane.next(2_000)).toBe(low)
  })

  it('the newest call is next while the queue is standing', () => {
    const { lane, insert } = setup()
    const oldest = insert(0)
    const newest = insert(50)
    expect(lane.next(100)).toBe(oldest)
    lane.codel.observe(100, 100)
    lane.codel.observe(200, 100)
    expect(lane.next(200)).toBe(newest)
  })

  it('the oldest call of the lowest priority is dropped, and never a critical one', () => {
    const { lane, insert } = setup()
    insert(0, 'critical')
    expect(lane.nextDrop).toBeUndefined()
    const high = insert(1, 'high')
    expect(lane.nextDrop).toBe(high)
    const low = insert(2, 'low')
    insert(3, 'low')
    expect(lane.nextDrop).toBe(low)
  })

  it('the standing delay is the longest wait since a call joined, without excluded time', () => {
    const { lane, insert } = setup()
    insert(0, 'normal', 250)
    insert(300, 'low')
    insert(400, 'critical')
    expect(lane.oldestJoinedMs).toBe(250)
    expect(lane.standingDelayMs(1_000)).toBe(750)
    lane.excludeWait(900)
    lane.excludeWait(600)
    expect(lane.standingDelayMs(1_000)).toBe(100)
  })
})
