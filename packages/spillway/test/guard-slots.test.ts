/** Slots, pace and vendor limits of one pod: when a queued call starts, and what a call gives back. */
import { describe, expect, it } from 'vitest'
import { sleep } from '../src/testing/index.js'
import { createGuardPod, createJob, EVERYWHERE, type Where } from './guard-pod.js'

type Options = Parameters<typeof createGuardPod>[0]

const QUEUE = { size: 100, timeoutMs: '10m' } as const

/** Calls that take `durationMs` each, with the times at which they started. */
function createCalls(where: Where, options: Options, durationMs = 0) {
  const pod = createGuardPod({ queue: QUEUE, ...options }, { where })
  const starts: number[] = []
  let running = 0
  let most = 0
  const call = (runOptions = {}) =>
    pod.run(async () => {
      starts.push(pod.clock.now())
      most = Math.max(most, ++running)
      if (durationMs > 0) await sleep(pod.clock, durationMs)
      running--
    }, runOptions)
  const calls = (count: number, runOptions = {}) =>
    Array.from({ length: count }, () => call(runOptions))
  return { ...pod, call, calls, starts, most: () => most }
}

/** Differences between consecutive starts. */
const gaps = (starts: readonly number[]) => starts.slice(1).map((at, index) => at - starts[index]!)

describe.each(EVERYWHERE)('slots and pace with the store %s', (where) => {
  it(`queued calls start exactly at the pace (${where})`, async () => {
    const pace = { limit: 10, windowMs: '1s', burst: 1 } as const
    const { clock, calls, starts } = createCalls(where, { pace })
    calls(6)
    await clock.advance(2_000)
    expect(starts).toHaveLength(6)
    expect(gaps(starts)).toEqual([100, 100, 100, 100, 100])
  })

  it(`calls of one moment start only up to the burst of the pace (${where})`, async () => {
    const pace = { limit: 10, windowMs: '1s', burst: 3 } as const
    const { clock, calls, starts } = createCalls(where, {
      pace,
      concurrency: { limit: 50 },
      limits: [{ limit: 1_000, windowMs: '1h' }],
    })
    calls(5)
    await clock.advance(50)
    expect(starts).toHaveLength(3)
    await clock.advance(1_000)
    expect(starts).toHaveLength(5)
  })

  it(`the pace waits for a slot, and a slot does not wait for more than the pace (${where})`, async () => {
    const pace = { limit: 10, windowMs: '1s', burst: 1 } as const
    const { clock, calls, starts, most } = createCalls(
      where,
      { pace, concurrency: { limit: 2 } },
      250,
    )
    calls(6)
    await clock.advance(5_000)
    expect(starts).toHaveLength(6)
    expect(most()).toBe(2)
    const [first = 0] = starts
    expect(starts.map((at) => at - first)).toEqual([0, 100, 250, 350, 500, 600])
  })

  it(`at most concurrency.limit calls run at once, and every slot is used (${where})`, async () => {
    const { clock, calls, starts, most } = createCalls(
      where,
      { concurrency: { limit: 3 }, limits: [{ limit: 1_000, windowMs: '1h' }] },
      100,
    )
    calls(5, { lane: 'a' })
    calls(5, { lane: 'b' })
    calls(5)
    await clock.advance(5_000)
    expect([starts.length, most()]).toEqual([15, 3])
    // Five rounds of 100 ms and a round trip each at most.
    expect(starts.at(-1)! - starts[0]!).toBeLessThanOrEqual(4 * 105)
  })

  it(`a call that waits for the vendor limit starts as soon as the store grants it (${where})`, async () => {
    const limits = [{ limit: 2, windowMs: 1_000, algorithm: 'fixed-window' }] as const
    const { clock, calls, starts } = createCalls(where, { limits })
    calls(6)
    await clock.advance(10_000)
    expect(starts).toHaveLength(6)
    // Two calls in each window, which begin at equal distances.
    const [, , second = 0, , third = 0, fourth = 0] = starts
    expect(fourth - third).toBeLessThanOrEqual(1)
    expect(third - second).toBeGreaterThanOrEqual(1_000)
    expect(third - second).toBeLessThanOrEqual(1_100)
    expect(second - starts[0]!).toBeLessThanOrEqual(1_100)
  })

  it(`a lane that is out of permits keeps no slot from other lanes (${where})`, async () => {
    const { clock, guard, calls, starts } = createCalls(
      where,
      { concurrency: { limit: 1 }, limits: [{ limit: 1, windowMs: '1h' }] },
      10,
    )
    calls(3, { lane: 'a' })
    await clock.advance(100)
    expect([starts.length, guard.snapshot().active]).toEqual([1, 0])
    const other = calls(1, { lane: 'b' })
    await clock.advance(100)
    expect([starts.length, other[0]?.state]).toEqual([2, 'resolved'])
    expect(guard.snapshot().active).toBe(0)
  })

  it(`a call that is aborted in the queue never starts, and the next call gets its turn (${where})`, async () => {
    const { clock, run, guard, call } = createCalls(where, { concurrency: { limit: 1 } })
    const job = createJob()
    run(job.fn)
    await clock.advance(10)
    const leaving = new AbortController()
    const aborted = call({ signal: leaving.signal })
    const next = call()
    await clock.advance(10)
    leaving.abort(new Error('gone'))
    await clock.advance(10)
    expect([aborted.state, aborted.error]).toEqual(['rejected', leaving.signal.reason])
    expect(next.state).toBe('pending')
    job.finish()
    await clock.advance(10)
    expect([next.state, guard.snapshot().active]).toEqual(['resolved', 0])
  })

  it(`the cost of a call decides how many calls a limit in tokens grants (${where})`, async () => {
    const limits = [{ unit: 'tokens', limit: 100, windowMs: '1h' }] as const
    const { clock, calls, starts } = createCalls(where, { limits })
    calls(5, { cost: { tokens: 40 } })
    await clock.advance(100)
    expect(starts).toHaveLength(2)
    calls(1, { lane: 'other', cost: { tokens: 100 } })
    await clock.advance(100)
    expect(starts).toHaveLength(3)
  })
})
