import { describe, expect, it } from 'vitest'
import { TestCall } from '../../../test/queued-test-call.js'
import { PRIORITIES, type Priority } from '../../core/options/priority.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { CallQueue, type CallQueueOptions } from './call-queue.js'
import type { LeaveReason } from './queued-call.js'

interface Guest {
  lane?: string
  priority?: Priority
  /** Arrival time of the call; a retry enters the queue later than its call arrived. */
  arrivedMs?: number
  deadlineMs?: number
  signal?: AbortSignal
}

function setup(options: Partial<CallQueueOptions> = {}) {
  const clock = createVirtualClock()
  const queue = new CallQueue({
    clock,
    size: 100,
    timeoutMs: 5_000,
    targetMs: 500,
    agingMs: 2_500,
    ...options,
  })
  /** Calls that left the queue by themselves, with reason and time. */
  const left: [name: string, why: LeaveReason | 'aborted', atMs: number][] = []
  const join = (name: string, about: Guest = {}, spare = 0) => {
    const guest = new TestCall({
      name,
      ...about,
      priority: PRIORITIES.indexOf(about.priority ?? 'normal'),
      arrivedMs: about.arrivedMs ?? clock.now(),
      onLeave: (why) => left.push([name, why, clock.now()]),
      onAborted: () => left.push([name, 'aborted', clock.now()]),
    })
    if (queue.join(guest, clock.now(), spare)) return guest
    left.push([name, 'displaced', clock.now()])
    return undefined
  }
  /** Takes the next call and keeps it. */
  const serve = (lane = 'default'): unknown => {
    const entry = queue.take(lane, clock.now())
    if (entry !== undefined) queue.remove(entry)
    return (entry as TestCall | undefined)?.name
  }
  const serveAll = (lane?: string): unknown[] => {
    const names: unknown[] = []
    for (let name = serve(lane); name !== undefined; name = serve(lane)) names.push(name)
    return names
  }
  return { clock, queue, left, join, serve, serveAll }
}

describe('queue order', () => {
  it('queue serves by priority, then by age', () => {
    const { join, serveAll } = setup()
    join('low 1', { priority: 'low' })
    join('normal 1')
    join('critical', { priority: 'critical' })
    join('normal 2')
    join('high', { priority: 'high' })
    join('low 2', { priority: 'low' })
    expect(serveAll()).toEqual(['critical', 'high', 'normal 1', 'normal 2', 'low 1', 'low 2'])
  })

  it('age makes up for low priority, so no call starves', async () => {
    const { clock, join, serve } = setup({ timeoutMs: 5_000, agingMs: 2_500, targetMs: 10_000 })
    join('low', { priority: 'low' })
    const served: unknown[] = []
    // A slot becomes free every 100 ms, and a call of normal priority arrives as often.
    for (let ms = 0; ms < 5_000; ms += 100) {
      join(`normal ${ms}`)
      served.push(serve())
      await clock.advance(100)
    }
    expect(served).toContain('low')
    expect(served.indexOf('low')).toBe(25)
  })

  it('the older call is first when age has made up for its priority', async () => {
    const { clock, join, serveAll } = setup({ agingMs: 1_000 })
    join('low', { priority: 'low' })
    await clock.advance(1_000)
    join('normal')
    join('high', { priority: 'high' })
    expect(serveAll()).toEqual(['high', 'low', 'normal'])
  })

  it('a retry is ordered by the arrival of its call', async () => {
    const { clock, join, serveAll } = setup()
    await clock.advance(300)
    join('second', { arrivedMs: 100 })
    join('fourth', { arrivedMs: 300 })
    join('first', { arrivedMs: 50 })
    join('third', { arrivedMs: 200 })
    expect(serveAll()).toEqual(['first', 'second', 'third', 'fourth'])
  })

  it('a call that got no permit returns to its position', () => {
    const { clock, queue, join, serveAll } = setup()
    join('first')
    join('second')
    join('third')
    const first = queue.take('default', clock.now())!
    const second = queue.take('default', clock.now())!
    queue.putBack(second)
    queue.putBack(first)
    expect(serveAll()).toEqual(['first', 'second', 'third'])
  })
})

describe('queue lanes', () => {
  it('each lane has its own order', () => {
    const { queue, join, serve } = setup()
    join('a1', { lane: 'a' })
    join('b1', { lane: 'b' })
    join('a2', { lane: 'a' })
    expect(queue.lengthOf('a')).toBe(2)
    expect(serve('b')).toBe('b1')
    expect(serve('b')).toBeUndefined()
    expect([serve('a'), serve('a')]).toEqual(['a1', 'a2'])
  })

  it('bestOf() picks the lane whose first call is next', async () => {
    const { clock, queue, join } = setup()
    join('a', { lane: 'a' })
    await clock.advance(10)
    join('b', { lane: 'b' })
    join('c', { lane: 'c', priority: 'high' })
    expect(queue.bestOf(['a', 'b', 'c'], clock.now())).toBe('c')
    expect(queue.bestOf(['b', 'a'], clock.now())).toBe('a')
    expect(queue.bestOf(['empty'], clock.now())).toBeUndefined()
  })

  it('an empty lane is dropped', () => {
    const { queue, join, serve } = setup()
    for (let lane = 0; lane < 100; lane++) {
      join('x', { lane: `lane ${lane}` })
      serve(`lane ${lane}`)
    }
    expect([...queue.lanes]).toEqual([])
  })
})

describe('queue waits', () => {
  it('each call leaves after its own queue timeout', async () => {
    const { clock, join, serveAll, left } = setup()
    join('first')
    await clock.advance(3_000)
    join('second')
    await clock.advance(1_999)
    expect(left).toEqual([])
    await clock.advance(1)
    expect(left).toEqual([['first', 'timeout', 5_000]])
    expect(serveAll()).toEqual(['second'])
  })

  it('the queue timeout of a retry begins when it enters the queue again', async () => {
    const { clock, join, left } = setup()
    await clock.advance(4_000)
    join('retry', { arrivedMs: 0 })
    await clock.advance(4_999)
    expect(left).toEqual([])
    await clock.advance(1)
    expect(left).toEqual([['retry', 'timeout', 9_000]])
  })

  it('a call leaves at its deadline if that is before the queue timeout', async () => {
    const { clock, join, left } = setup()
    join('hurried', { deadlineMs: 700 })
    join('patient', { deadlineMs: 7_000 })
    await clock.advance(10_000)
    expect(left).toEqual([
      ['hurried', 'deadline', 700],
      ['patient', 'timeout', 5_000],
    ])
  })

  it('the queue timeout continues during a permit round trip', async () => {
    const { clock, queue, join, left } = setup()
    join('asking')
    const entry = queue.take('default', clock.now())!
    await clock.advance(5_000)
    expect(left).toEqual([['asking', 'timeout', 5_000]])
    queue.putBack(entry)
    expect(queue.length).toBe(0)
  })

  it('served, evicted and aborted calls leave no timer', async () => {
    const { clock, join, serve } = setup({ size: 2 })
    const abort = new AbortController()
    join('low', { priority: 'low', deadlineMs: 4_000 })
    join('aborting', { signal: abort.signal, deadlineMs: 3_000 })
    join('high', { priority: 'high' })
    abort.abort()
    expect(serve()).toBe('high')
    await clock.settle()
    expect(clock.pending).toBe(0)
  })
})

describe('aborted calls in the queue', () => {
  it('an aborted call leaves the middle of the queue at once', () => {
    const { clock, queue, join, left, serveAll } = setup()
    const abort = new AbortController()
    join('first')
    join('aborting', { signal: abort.signal })
    join('third')
    abort.abort()
    expect(left).toEqual([['aborting', 'aborted', clock.now()]])
    expect(queue.length).toBe(2)
    expect(serveAll()).toEqual(['first', 'third'])
  })

  it('a call aborted during a permit round trip leaves at once and does not return', () => {
    const { clock, queue, join, left, serveAll } = setup()
    const abort = new AbortController()
    join('aborting', { signal: abort.signal })
    const entry = queue.take('default', clock.now())!
    abort.abort()
    expect(left).toHaveLength(1)
    queue.putBack(entry)
    expect(serveAll()).toEqual([])
  })

  it('the queue leaves no listener on the signal of a served call', () => {
    const { join, left, serve } = setup()
    const abort = new AbortController()
    join('served', { signal: abort.signal })
    serve()
    abort.abort()
    expect(left).toEqual([])
  })
})

describe('full queue', () => {
  it('a full queue refuses a call that outranks no queued call', () => {
    const { queue, join, left } = setup({ size: 2 })
    join('first')
    join('second')
    expect(queue.hasPlace(PRIORITIES.indexOf('normal'), 0)).toBe(false)
    join('third')
    expect(left).toEqual([['third', 'displaced', 0]])
  })

  it('a full queue evicts the newest call of the lowest priority for a more important one', async () => {
    const { clock, queue, join, left, serveAll } = setup({ size: 4 })
    join('low 1', { priority: 'low', lane: 'a' })
    await clock.advance(1)
    join('low 2', { priority: 'low', lane: 'b' })
    await clock.advance(1)
    join('normal', { lane: 'a' })
    join('high', { priority: 'high', lane: 'a' })
    expect(queue.hasPlace(PRIORITIES.indexOf('normal'), 0)).toBe(true)
    join('new 1', { lane: 'a' })
    join('new 2', { lane: 'a' })
    join('new 3', { lane: 'a' })
    expect(left.map(([name]) => name)).toEqual(['low 2', 'low 1', 'new 3'])
    join('critical', { priority: 'critical', lane: 'a' })
    expect(left.at(-1)).toEqual(['new 2', 'displaced', 2])
    expect(serveAll('a')).toEqual(['critical', 'high', 'normal', 'new 1'])
    expect(serveAll('b')).toEqual([])
  })

  it('a full queue never evicts a call for one of equal priority', async () => {
    const { clock, join, left } = setup({ size: 1, agingMs: 100 })
    join('old low', { priority: 'low' })
    await clock.advance(1_000)
    join('new low', { priority: 'low' })
    expect(left.map(([name]) => name)).toEqual(['new low'])
  })

  it('calls that can start at once are accepted beyond the queue size', () => {
    const { join, left } = setup({ size: 0 })
    join('first', {}, 2)
    join('second', {}, 2)
    join('third', {}, 2)
    expect(left.map(([name]) => name)).toEqual(['third'])
  })
})

describe('standing queue', () => {
  /** Every `everyMs` one call arrives and one is served. */
  async function overload(
    { clock, join, serve }: ReturnType<typeof setup>,
    untilMs: number,
    everyMs = 100,
  ): Promise<unknown[]> {
    const served: unknown[] = []
    while (clock.now() < untilMs) {
      await clock.advance(everyMs)
      join(`at ${clock.now()}`)
      served.push(serve())
    }
    return served
  }

  it('a standing queue serves newest first and drops its oldest call', async () => {
    const tools = setup({ targetMs: 500 })
    const { join, left, queue } = tools
    for (let i = 0; i < 20; i++) join(`early ${i}`)
    const served = await overload(tools, 3_000)
    // A burst is served in order for one interval.
    expect(served.slice(0, 9)).toEqual(Array.from({ length: 9 }, (_, i) => `early ${i}`))
    // After that new calls are served without a wait.
    const last = served.slice(9)
    expect(last).toEqual(last.map((_, i) => `at ${1_000 + 100 * i}`))
    expect(left.every(([, why]) => why === 'overload')).toBe(true)
    // The oldest remaining calls are dropped one by one.
    expect(left.slice(0, 3).map(([name]) => name)).toEqual(['early 9', 'early 10', 'early 11'])
    expect(left[0]?.[2]).toBe(1_000)
    expect(left.length).toBeGreaterThan(6)
    expect(queue.length).toBe(20 - left.length)
  })

  it('a standing queue leaves no slot empty when slots become free in waves', async () => {
    const tools = setup({ size: 40, targetMs: 100, timeoutMs: 1_000, agingMs: 500 })
    const { clock, join, serve, left } = tools
    const served: unknown[] = []
    let came = 0
    for (let wave = 0; wave < 50; wave++) {
      for (let tick = 0; tick < 40; tick++) {
        await clock.advance(10)
        for (let i = 0; i < 4; i++) {
          const draw = (came++ * 37) % 100
          if (draw < 5) join(`important ${came}`, { priority: 'high' })
          else join('other', { priority: draw < 30 ? 'normal' : 'low' })
        }
      }
      for (let slot = 0; slot < 16; slot++) served.push(serve())
    }
    expect(served.filter((name) => name === undefined)).toEqual([])
    expect(left.filter(([name]) => name.startsWith('important'))).toEqual([])
    expect(left.some(([, why]) => why === 'overload')).toBe(true)
  })

  it('queue returns to first come, first served as soon as waits are below the target', async () => {
    const tools = setup({ targetMs: 500 })
    const { clock, join, serve, serveAll, left } = tools
    for (let i = 0; i < 4; i++) join(`early ${i}`)
    await clock.advance(500)
    expect(serve()).toBe('early 0')
    await clock.advance(500)
    join('new 1')
    expect(serve()).toBe('new 1')
    expect(left.map(([name]) => name)).toEqual(['early 1'])
    await clock.advance(4_000)
    join('a')
    join('b')
    join('c')
    expect(serveAll()).toEqual(['a', 'b', 'c'])
  })

  it('a standing queue drops the lowest priority first and never a critical call', async () => {
    const tools = setup({ targetMs: 100, timeoutMs: 60_000, agingMs: 60_000 })
    const { clock, join, left, serve } = tools
    for (let i = 0; i < 10; i++) join(`critical ${i}`, { priority: 'critical' })
    for (let i = 0; i < 3; i++) join(`normal ${i}`)
    for (let i = 0; i < 3; i++) join(`low ${i}`, { priority: 'low' })
    for (let i = 0; i < 10; i++) {
      await clock.advance(200)
      expect(String(serve())).toMatch(/critical/)
    }
    expect(left.map(([name]) => name)).toEqual([
      ...['low 0', 'low 1', 'low 2'],
      ...['normal 0', 'normal 1', 'normal 2'],
    ])
  })

  it('only the lane with a standing queue drops calls', async () => {
    const { clock, join, serve, left } = setup({ targetMs: 100 })
    for (let i = 0; i < 5; i++) join(`slow ${i}`, { lane: 'slow' })
    await clock.advance(100)
    serve('slow')
    await clock.advance(100)
    join('quick 1', { lane: 'quick' })
    join('quick 2', { lane: 'quick' })
    serve('slow')
    expect(left.map(([name]) => name)).toEqual(['slow 1'])
    expect([serve('quick'), serve('quick')]).toEqual(['quick 1', 'quick 2'])
  })

  it('waiting for a known time does not make a queue standing', async () => {
    const { clock, queue, join, serve, left } = setup({ targetMs: 500 })
    for (let i = 0; i < 8; i++) join(`early ${i}`)
    queue.excludeWait('default', 4_000)
    for (let ms = 0; ms < 4_000; ms += 1_000) {
      await clock.advance(1_000)
      const entry = queue.take('default', clock.now())!
      queue.putBack(entry)
    }
    expect(serve()).toBe('early 0')
    await clock.advance(499)
    expect(serve()).toBe('early 1')
    expect(left).toEqual([])
  })
})

describe('queue figures', () => {
  it('queue reports calls by priority and the longest wait', async () => {
    const { clock, queue, join, serve } = setup()
    join('a', { lane: 'a', priority: 'low' })
    await clock.advance(100)
    join('b', { lane: 'b', priority: 'low' })
    join('c', { lane: 'b', priority: 'critical' })
    await clock.advance(50)
    expect(queue.lengthsByPriority()).toEqual({ critical: 1, high: 0, normal: 0, low: 2 })
    expect(queue.oldestWaitMs(clock.now())).toBe(150)
    serve('a')
    expect(queue.oldestWaitMs(clock.now())).toBe(50)
    expect(queue.length).toBe(2)
  })
})
