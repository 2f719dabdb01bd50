import { describe, expect, it } from 'vitest'
import { TestCall } from '../../../test/queued-test-call.js'
import { SpillwayError } from '../../core/errors.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { LaneRegistry } from '../lanes/lane-registry.js'
import { CallQueue } from './call-queue.js'
import { LaneBlocks } from './lane-block.js'
import type { PermitCall } from './ports.js'

/** A queued call that costs a number of tokens. */
class TokenCall extends TestCall {
  readonly cost = undefined
  readonly costs: readonly number[]
  costsUnder: unknown
  readonly refusals: unknown[] = []

  constructor(about: ConstructorParameters<typeof TestCall>[0], tokens: number) {
    super(about)
    this.costs = [tokens]
  }

  admit(): void {}

  refuse(error: unknown): void {
    this.refusals.push(error)
  }
}

function setup({ mayWait = true } = {}) {
  const clock = createVirtualClock()
  const queue = new CallQueue({ clock, size: 9, timeoutMs: 5_000, targetMs: 1e9, agingMs: 1e9 })
  const store: { pausedMs: number | undefined; reads: number; unblocked: number } = {
    ...{ pausedMs: 0, reads: 0, unblocked: 0 },
  }
  const blocks = new LaneBlocks({
    clock,
    queue,
    lanes: new LaneRegistry({ name: 'vendor', clock }),
    limits: {
      settings: {
        of: (lane) => ({ pool: lane === 'c' ? 'other' : 'pool', costsOf: ({ costs }) => costs }),
      },
      pausedMs: async () => {
        store.reads++
        return store.pausedMs
      },
    },
    mayWait,
    limitedError: (block, retryAfterMs) =>
      new SpillwayError({
        code: 'VENDOR_LIMITED',
        stage: 'vendor-limit',
        scope: 'shared',
        retryAfterMs,
        explain: () => block.lane,
      }),
    onUnblocked: () => store.unblocked++,
  })
  const create = (tokens: number, deadlineMs?: number) => {
    const about = { lane: 'a', arrivedMs: clock.now() }
    return new TokenCall(deadlineMs === undefined ? about : { ...about, deadlineMs }, tokens)
  }
  const join = (tokens: number, deadlineMs?: number) => {
    const call = create(tokens, deadlineMs)
    queue.join(call, clock.now(), 0)
    return call
  }
  const block = blocks.of('a')
  const refused = (waitMs: number, call?: TokenCall, { tokens = 10, paused = false } = {}) => {
    const reply = { granted: 0, waitUs: waitMs * 1_000, paused, left: [3] }
    const costs = call?.costs ?? [tokens]
    return blocks.block(block, reply as never, costs, call as unknown as PermitCall)
  }
  return { clock, queue, store, blocks, block, create, join, refused }
}

describe('lane whose limits have nothing left', () => {
  it('a lane is blocked until the time that the store named', async () => {
    const { clock, blocks, block, refused } = setup()
    expect(blocks.replyAgeMs('a', 0)).toBeUndefined()
    expect(blocks.waitMs('a', 0)).toBe(0)
    expect(refused(300)).toBe(false)
    expect(block).toMatchObject({ left: [3], blockedAtMs: 0, paused: false, wakeMs: 300 })
    await clock.advance(100)
    expect([blocks.waitMs('a', 100), blocks.replyAgeMs('a', 100)]).toEqual([200, 100])
    expect(blocks.pausedMs('a', 100)).toBe(0)
    expect([block.isBlocked(299), block.isBlocked(300)]).toEqual([true, false])
    expect([blocks.waitMs('a', 400), blocks.waitMs('unknown', 400)]).toEqual([0, 0])
    expect(blocks.replyAgeMs('a', 400)).toBeUndefined()
    expect(blocks.isIdle('a', 0)).toBe(false)
  })

  it('a lane is blocked for the same time at any time of the clock', async () => {
    const { clock, blocks, block, create, join, refused } = setup()
    await clock.advance(1_000)
    const leaving = join(10, 1_200)
    join(10)
    refused(300)
    expect(leaving.refusals).toMatchObject([{ retryAfterMs: 300 }])
    expect(blocks.replyAgeMs('a', 1_100)).toBe(100)
    expect(blocks.refusalOf(create(10, 1_200), 1_000)).toBeDefined()
    expect(blocks.refusalOf(create(10, 1_300), 1_000)).toBeUndefined()
    const other = setup()
    await other.clock.advance(1_000)
    other.refused(300)
    expect(other.blocks.blockOf('a', other.create(10), 1_009)).toBe(other.block)
    expect(other.blocks.blockOf('a', other.create(10), 1_010)).toBeUndefined()
    expect(block.isBlocked(1_299)).toBe(true)
  })

  it('a lane without calls, timer, block or round trip is idle', () => {
    const { clock, blocks, block, join, queue } = setup()
    expect(blocks.isIdle('a', 0)).toBe(true)
    block.inFlight = true
    expect(blocks.isIdle('a', 0)).toBe(false)
    block.inFlight = false
    block.timer = clock.schedule(1, () => {})
    expect(blocks.isIdle('a', 0)).toBe(false)
    block.timer = undefined
    const call = join(10)
    expect(blocks.isIdle('a', 0)).toBe(false)
    queue.remove(call)
    expect(blocks.isIdle('a', 0)).toBe(true)
  })

  it('an unknown lane is neither paused nor refused', () => {
    const { blocks } = setup()
    expect([blocks.pausedMs('x', 0), blocks.replyAgeMs('x', 0)]).toEqual([0, undefined])
  })

  it('a lane stays blocked when a call leaves that is not the next one', () => {
    const { blocks, block, queue, join, refused } = setup()
    const first = join(10)
    const second = join(1)
    refused(300, first)
    queue.remove(second)
    expect(blocks.left(second, 0)).toBe(false)
    expect([block.isBlocked(0), block.blocker]).toEqual([true, first])
  })

  it('a new call that costs as much is held back for 10 ms, and a cheaper one is not', () => {
    const { blocks, block, create, refused } = setup()
    refused(300, undefined, { tokens: 10 })
    expect(blocks.blockOf('a', create(10), 9)).toBe(block)
    expect(blocks.blockOf('a', create(11), 9)).toBe(block)
    expect(blocks.blockOf('a', create(9), 9)).toBeUndefined()
    expect(blocks.blockOf('a', create(10), 10)).toBeUndefined()
    expect(blocks.isShut('a', 5)).toBe(false)
  })

  it('a new call is held back as long as calls wait, unless replies of the store were lost', () => {
    const { blocks, block, create, join, refused } = setup()
    join(10)
    refused(300)
    expect(blocks.blockOf('a', create(1), 299)).toBe(block)
    expect(blocks.blockOf('a', create(1), 300)).toBeUndefined()
    expect([blocks.isShut('a', 299), blocks.isShut('a', 300), blocks.isShut('x', 0)]).toEqual([
      ...[true, false, false],
    ])
    block.lostRoundTrips = 1
    expect(blocks.blockOf('a', create(1), 100)).toBeUndefined()
    expect(blocks.isShut('a', 100)).toBe(false)
  })

  it('a call is refused if the block outlasts its deadline, the queue timeout or its patience', () => {
    const { blocks, create, join, refused } = setup()
    join(10)
    refused(5_000)
    expect(blocks.refusalOf(create(1), 0)).toBeUndefined()
    expect(blocks.refusalOf(create(1, 5_000), 0)).toBeUndefined()
    expect(blocks.refusalOf(create(1, 4_999), 0)).toMatchObject({ retryAfterMs: 5_000 })
    const hasty = { ...create(1), lane: 'a', deadlineMs: 1e9, mayWait: false }
    expect(blocks.refusalOf(hasty, 0)).toMatchObject({ retryAfterMs: 5_000 })
    expect(blocks.refusalOf({ ...hasty, lane: 'b' }, 0)).toBeUndefined()
    refused(5_001)
    expect(blocks.refusalOf(create(10), 0)).toMatchObject({ retryAfterMs: 5_001 })
  })

  it('without waiting every call of a blocked lane is refused', () => {
    const { blocks, create, refused } = setup({ mayWait: false })
    refused(300)
    expect(blocks.refusalOf(create(10), 1)).toMatchObject({ retryAfterMs: 299 })
    expect(blocks.limitedError(create(10), 7)).toMatchObject({ message: 'a', retryAfterMs: 7 })
  })

  it('calls that cannot wait as long as the refused one are refused with it', () => {
    const { queue, join, refused } = setup()
    const patient = join(10, 400)
    const hasty = join(10, 200)
    expect(refused(300, patient)).toBe(false)
    expect(hasty.refusals).toMatchObject([{ retryAfterMs: 300 }])
    expect(patient.refusals).toEqual([])
    expect(queue.list('a')).toEqual([patient])
  })

  it('with a refused call that cannot wait only those leave that cost as much', () => {
    const { block, join, refused } = setup()
    const first = join(10, 299)
    const cheaper = join(9, 200)
    const dearer = join(11, 200)
    expect(refused(300, first)).toBe(true)
    expect([first, cheaper, dearer].map(({ refusals }) => refusals.length)).toEqual([1, 0, 1])
    expect(block.isBlocked(0)).toBe(false)
    expect(block.blocker).toBeUndefined()
  })

  it('a call that gives up when the block ends waits for it', () => {
    const { join, refused } = setup()
    const call = join(10, 300)
    expect(refused(300, call)).toBe(false)
    expect(call.refusals).toEqual([])
  })

  it('others may ask if the refused call has left meanwhile', () => {
    const { queue, block, join, refused } = setup()
    const call = join(10)
    queue.remove(call)
    expect(refused(300, call)).toBe(true)
    expect(block.isBlocked(0)).toBe(false)
  })

  it('a refusal is out of date if capacity became free during its round trip, but not a pause', () => {
    const { block, refused } = setup()
    block.inFlight = true
    block.unblock()
    expect(refused(300)).toBe(true)
    expect([block.isBlocked(0), block.wokenInFlight]).toEqual([false, false])
    block.unblock()
    expect(refused(300, undefined, { paused: true })).toBe(false)
    expect(block.isBlocked(0)).toBe(true)
  })
})

describe('queue of a blocked lane', () => {
  it('the first call to join ends an earlier block, and takes the place of a refusal of this moment', async () => {
    const { clock, blocks, block, join, refused } = setup()
    refused(300)
    const now = join(10) as unknown as PermitCall
    blocks.joined(block, now)
    expect([block.isBlocked(0), block.blocker]).toEqual([true, now])
    await clock.advance(1)
    blocks.joined(block, now)
    expect([block.isBlocked(1), block.blocker]).toEqual([false, undefined])
  })

  it.each(['inFlight', 'paused'] as const)(
    'the first call to join changes nothing while the lane is %s',
    async (state) => {
      const { clock, blocks, block, join, refused } = setup()
      refused(300)
      block[state] = true
      await clock.advance(1)
      blocks.joined(block, join(10) as unknown as PermitCall)
      expect(block.isBlocked(1)).toBe(true)
    },
  )

  it('a second call to join changes nothing', async () => {
    const { clock, blocks, block, join, refused } = setup()
    join(10)
    refused(300)
    await clock.advance(1)
    blocks.joined(block, join(10) as unknown as PermitCall)
    expect(block.isBlocked(1)).toBe(true)
  })

  it('when the refused call leaves, a cheaper next call asks again and a dearer one waits', () => {
    const { queue, blocks, block, join, refused } = setup()
    const [first, second, third] = [join(10), join(10), join(9)] as const
    refused(300, first)
    expect(blocks.left(third, 0)).toBe(false)
    queue.remove(first)
    expect(blocks.left(first, 0)).toBe(false)
    expect([block.blocker, block.isBlocked(0)]).toEqual([second, true])
    queue.remove(second)
    expect(blocks.left(second, 0)).toBe(true)
    expect(block.isBlocked(0)).toBe(false)
  })

  it('when the last call leaves, the block ends, unless it is a pause', () => {
    const { queue, blocks, block, join, refused } = setup()
    const call = join(10)
    refused(300, call, { paused: true })
    queue.remove(call)
    expect(blocks.left(call, 0)).toBe(false)
    expect(block.isBlocked(0)).toBe(true)
    refused(300, undefined)
    block.paused = false
    block.blocker = call as unknown as PermitCall
    expect(blocks.left(call, 0)).toBe(false)
    expect(block.isBlocked(0)).toBe(false)
    expect(blocks.left(new TokenCall({ lane: 'unknown', arrivedMs: 0 }, 1), 0)).toBe(false)
  })
})

describe('paused lane', () => {
  it('a pause of a lane pauses the other lanes of its pool', () => {
    const { blocks, block, create } = setup()
    blocks.of('b')
    blocks.of('c')
    blocks.pauseLane('a', 500)
    expect(['a', 'b', 'c'].map((lane) => blocks.pausedMs(lane, 100))).toEqual([400, 400, 0])
    expect(blocks.isShut('a', 100)).toBe(true)
    expect(blocks.blockOf('a', create(0), 400)).toBe(block)
  })

  it('the longer of two pauses counts, and a pause replaces a block', () => {
    const { blocks, block, refused } = setup()
    refused(900)
    block.lostRoundTrips = 2
    blocks.pauseLane('a', 500)
    expect([block.blockedUntilMs, block.lostRoundTrips]).toEqual([500, 0])
    blocks.pauseLane('a', 400)
    expect(block.blockedUntilMs).toBe(500)
    blocks.pauseLane('a', 600)
    expect(block.blockedUntilMs).toBe(600)
    refused(550)
    expect(block).toMatchObject({ blockedUntilMs: 600, paused: true })
    refused(650)
    expect(block).toMatchObject({ blockedUntilMs: 650, paused: false })
  })

  it('a pause refuses calls that cannot wait for its end', () => {
    const { blocks, join } = setup()
    const [hasty, patient] = [join(10, 499), join(10, 500)]
    blocks.pauseLane('a', 500)
    expect([hasty.refusals.length, patient.refusals.length]).toEqual([1, 0])
  })

  it('a lost round trip delays the next one, and does not shorten a pause', () => {
    const { blocks, block, join } = setup()
    blocks.requestLater(block, 25)
    expect(block.blockedUntilMs).toBe(25)
    blocks.requestLater(block, 20)
    expect(block.blockedUntilMs).toBe(25)
    blocks.pauseLane('a', 500)
    block.lostRoundTrips = 1
    const hasty = join(10, 400)
    blocks.requestLater(block, 50)
    expect([block.blockedUntilMs, block.lostRoundTrips, hasty.refusals.length]).toEqual([500, 0, 1])
    blocks.requestLater(block, 600)
    expect(block.blockedUntilMs).toBe(600)
  })

  it('a pause that the store reported is read again every second, until it has ended', async () => {
    const { clock, store, blocks, block, create, refused } = setup()
    refused(60_000, undefined, { paused: true })
    expect(block.wakeMs).toBe(1_000)
    blocks.recheckPause(block, 999)
    expect(store.reads).toBe(0)
    store.pausedMs = 30_000
    await clock.advance(1_000)
    blocks.blockOf('a', create(1), 1_000)
    await clock.settle()
    expect([store.reads, block.blockedUntilMs, block.wakeMs]).toEqual([1, 31_000, 2_000])
    expect(store.unblocked).toBe(0)
    store.pausedMs = 0
    await clock.advance(1_000)
    blocks.recheckPause(block, 2_000)
    await clock.settle()
    expect([store.unblocked, block.paused, block.isBlocked(2_000)]).toEqual([1, false, false])
  })

  it('a pause stays if it cannot be read, or if the vendor asked for another one meanwhile', async () => {
    const { clock, store, blocks, block, refused } = setup()
    refused(60_000, undefined, { paused: true })
    store.pausedMs = undefined
    await clock.advance(1_000)
    blocks.recheckPause(block, 1_000)
    await clock.settle()
    expect(block.blockedUntilMs).toBe(60_000)
    store.pausedMs = 0
    blocks.recheckPause(block, 2_000)
    blocks.pauseLane('a', 90_000)
    await clock.settle()
    expect([block.blockedUntilMs, store.unblocked]).toEqual([90_000, 0])
  })

  it('closing cancels the timers of all lanes', async () => {
    const { clock, blocks, block } = setup()
    let fired = false
    block.timer = clock.schedule(10, () => {
      fired = true
    })
    expect(blocks.isIdle('a', 0)).toBe(false)
    blocks.close()
    await clock.advance(100)
    expect(fired).toBe(false)
  })
})
