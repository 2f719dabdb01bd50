/** Order and time of the dispatcher's permit requests, and its counts of waiting calls. */
import { describe, expect, it, vi } from 'vitest'
import { TestCall } from '../../../test/queued-test-call.js'
import { SpillwayError } from '../../core/errors.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import type { LanePermit, LimitReply } from '../rate-limiter/permit.js'
import { CallQueue } from './call-queue.js'
import { PermitDispatcher } from './permit-dispatcher.js'

type Fate = 'admitted' | `refused: ${string}`

class Call extends TestCall {
  readonly cost = undefined
  readonly costs = [1]
  costsUnder: unknown
  fate: Fate | undefined

  admit(): void {
    this.fate = 'admitted'
  }

  refuse(error: unknown): void {
    this.fate = `refused: ${(error as Error).message}`
  }
}

interface Settings {
  slots?: number
  remote?: boolean
  mayWait?: boolean
  sameClock?: boolean
  /** Slots of single lanes. */
  lanes?: Record<string, number>
  /** Milliseconds until the pace allows a call. */
  paceMs?: number
}

/** A pod with slots, and limits that grant everything until a test says otherwise. */
function setup({ slots = 10, remote = false, mayWait = true, ...more }: Settings = {}) {
  const { lanes, sameClock } = more
  const clock = createVirtualClock()
  const timing = { timeoutMs: 10_000, targetMs: 1e9, agingMs: 1e9 }
  const queue = new CallQueue({ clock, size: 2_000, ...timing })
  const pod = { reserved: 0, active: 0, paceMs: more.paceMs ?? 0 }
  const ofLane: Record<string, number> = {}
  const freeOf = (lane: string) => (lanes?.[lane] ?? Number.POSITIVE_INFINITY) - (ofLane[lane] ?? 0)
  const free = (lane?: string) => {
    if (pod.paceMs > 0) return 0
    const ofPod = slots - pod.reserved - pod.active
    return lane === undefined ? ofPod : Math.min(ofPod, freeOf(lane))
  }
  const takes: { lane: string; calls: number; atMs: number | undefined; waitMs: number }[] = []
  const replies: { resolve(reply: LimitReply): void; reject(error: Error): void }[] = []
  /** The reply of a limit that is not remote. */
  const store: { reply(calls: number): Partial<LimitReply>; pausedMs: number | undefined } = {
    reply: (calls) => ({ granted: calls }),
    pausedMs: undefined,
  }
  const answer = (reply: Partial<LimitReply>) =>
    ({ granted: 0, waitUs: 0, paused: false, nowUs: 0, stamps: [], ...reply }) as LimitReply
  const error = (text: string) =>
    new SpillwayError({
      ...{ code: 'VENDOR_LIMITED', stage: 'vendor-limit', scope: 'shared' },
      explain: () => text,
    })
  const dispatcher = new PermitDispatcher({
    ...{ clock, queue, mayWait, breaker: undefined },
    ...(sameClock !== undefined && { sameClock }),
    limits: {
      remote,
      useWithinMs: 1_000,
      settings: { of: () => ({ costsOf: ({ costs }) => costs }) },
      take(lane, costs, atMs, waitMs) {
        takes.push({ lane, calls: costs.length, atMs, waitMs })
        if (!remote) return answer(store.reply(costs.length))
        return new Promise((resolve, reject) => replies.push({ resolve, reject }))
      },
      createPermit: () => ({ refund() {} }) as unknown as LanePermit,
      pausedMs: async () => store.pausedMs,
    },
    capacity: {
      get full() {
        return slots - pod.reserved - pod.active === 0
      },
      free: (_, lane) => free(lane),
      paceWaitMs: () => pod.paceMs,
      ...(lanes && { lanes: { free: freeOf } }),
      reserve(count, lane) {
        pod.reserved += count
        ofLane[lane] = (ofLane[lane] ?? 0) + count
      },
      giveUp(lane) {
        pod.reserved--
        ofLane[lane] = (ofLane[lane] ?? 0) - 1
      },
      admit() {
        pod.reserved--
        pod.active++
      },
      start(lane) {
        pod.active++
        ofLane[lane] = (ofLane[lane] ?? 0) + 1
      },
    },
    storeError: () => error('store'),
    limitedError: (block, retryAfterMs) => error(`${block.lane} limited for ${retryAfterMs} ms`),
    busyError: (stage) => error(`busy: ${stage}`),
  })
  const join = (lane = 'a', about: Partial<ConstructorParameters<typeof TestCall>[0]> = {}) => {
    const call = new Call({ lane, arrivedMs: clock.now(), ...about })
    queue.join(call, clock.now(), 1_000)
    dispatcher.arrived(call)
    return call
  }
  const joinAll = (count: number, lane = 'a') => Array.from({ length: count }, () => join(lane))
  /** Replies to the oldest round trip. */
  const reply = async (given: Partial<LimitReply>) => {
    replies.shift()?.resolve(answer(given))
    await clock.settle()
  }
  const lose = async () => {
    replies.shift()?.reject(new Error('no reply'))
    await clock.settle()
  }
  /** Calls of a lane that the limits refuse for some time. */
  const block = (lane: string, waitMs: number, calls = 1) => {
    const { reply: before } = store
    store.reply = () => ({ granted: 0, waitUs: waitMs * 1_000 })
    const blocked = joinAll(calls, lane)
    store.reply = before
    return blocked
  }
  const fates = (calls: readonly Call[]) => calls.map(({ fate }) => fate)
  return { clock, queue, pod, takes, store, dispatcher, join, joinAll, reply, lose, block, fates }
}

describe('round trips of the dispatcher', () => {
  it('calls of one turn share a round trip, and later ones collect until its reply', async () => {
    const { clock, takes, joinAll, reply, fates } = setup({ remote: true })
    const first = joinAll(3)
    expect(takes).toEqual([])
    await clock.settle()
    const later = joinAll(2)
    await clock.settle()
    expect(takes).toEqual([{ lane: 'a', calls: 3, atMs: undefined, waitMs: 10_000 }])
    await reply({ granted: 3 })
    expect(fates([...first, ...later])).toEqual([
      ...['admitted', 'admitted', 'admitted', undefined, undefined],
    ])
    expect(takes.at(-1)).toMatchObject({ calls: 2 })
  })

  it('a round trip requests as many calls as there are free slots, and at most 256', async () => {
    const few = setup({ slots: 2, remote: true })
    few.joinAll(5)
    await few.clock.settle()
    expect(few.takes).toMatchObject([{ calls: 2 }])
    const many = setup({ slots: 1_000, paceMs: 1 })
    many.joinAll(600)
    expect(many.takes).toEqual([])
    many.pod.paceMs = 0
    many.dispatcher.dispatch()
    expect(many.takes.map(({ calls }) => calls)).toEqual([256, 256, 88])
  })

  it('calls of several lanes are requested lane by lane, also in batches of 256', async () => {
    const { pod, takes, joinAll, dispatcher } = setup({ slots: 1_000, paceMs: 1 })
    joinAll(300, 'a')
    joinAll(2, 'b')
    pod.paceMs = 0
    dispatcher.dispatch()
    expect(takes.map(({ lane, calls }) => [lane, calls])).toEqual([
      ['a', 256],
      ['a', 44],
      ['b', 2],
    ])
  })

  it('the dispatcher sends the time only to a store with the same clock', () => {
    const same = setup({ sameClock: true })
    same.join()
    const other = setup({ sameClock: false })
    other.join()
    expect([same.takes[0]?.atMs, other.takes[0]?.atMs]).toEqual([0, undefined])
  })

  it('slots that become free together are assigned to calls in one microtask', async () => {
    const { clock, pod, takes, joinAll, dispatcher } = setup({ slots: 2 })
    joinAll(6)
    takes.length = 0
    pod.active = 0
    dispatcher.freed()
    dispatcher.freed()
    expect(takes).toEqual([])
    await clock.settle()
    expect(takes).toMatchObject([{ calls: 2 }])
    pod.active = 0
    dispatcher.freed()
    await clock.settle()
    expect(takes).toHaveLength(2)
  })

  it('slots of a pod with a remote store are assigned at the end of the event-loop turn', async () => {
    const { clock, takes, joinAll, dispatcher } = setup({ remote: true, paceMs: 0, slots: 4 })
    joinAll(2)
    dispatcher.freed()
    await Promise.resolve()
    expect(takes).toEqual([])
    await clock.settle()
    expect(takes).toMatchObject([{ calls: 2 }])
  })
})

describe('choice of the dispatcher between lanes', () => {
  it('the call of the highest priority comes first, whatever its lane', () => {
    const { pod, join, dispatcher, fates } = setup({ slots: 2, paceMs: 1 })
    const calls = [join('a'), join('b', { priority: 1 }), join('a', { priority: 0 }), join('b')]
    pod.paceMs = 0
    dispatcher.dispatch()
    expect(fates(calls)).toEqual([undefined, 'admitted', 'admitted', undefined])
  })

  it('a lane without free slots of its own leaves free slots of the pod to other lanes', () => {
    const { pod, takes, joinAll, dispatcher, fates } = setup({ lanes: { a: 2 }, paceMs: 1 })
    const [a, b] = [joinAll(4, 'a'), joinAll(3, 'b')]
    pod.paceMs = 0
    dispatcher.dispatch()
    expect(fates(a)).toEqual(['admitted', 'admitted', undefined, undefined])
    expect(fates(b)).toEqual(['admitted', 'admitted', 'admitted'])
    expect(takes.map(({ lane, calls }) => [lane, calls])).toEqual([
      ['a', 2],
      ['b', 3],
    ])
  })

  it('a lane whose own slots are all in use requests nothing', () => {
    const { pod, takes, joinAll, dispatcher } = setup({ lanes: { a: 1 } })
    joinAll(1, 'a')
    pod.paceMs = 1
    joinAll(2, 'a')
    joinAll(2, 'b')
    takes.length = 0
    pod.paceMs = 0
    dispatcher.dispatch()
    expect(takes.map(({ lane, calls }) => [lane, calls])).toEqual([['b', 2]])
  })

  it('a blocked lane and one on a round trip do not hold back another', async () => {
    const { clock, block, join, dispatcher } = setup()
    block('a', 500)
    expect(join('b').fate).toBe('admitted')
    expect(dispatcher.waitingForPod(clock.now())).toBe(0)
    const remote = setup({ remote: true })
    remote.join('a')
    await remote.clock.settle()
    remote.join('a')
    remote.join('b')
    await remote.clock.settle()
    expect(remote.takes.map(({ lane }) => lane)).toEqual(['a', 'b'])
  })
})

describe('waits of the dispatcher', () => {
  it('a lane requests permits again exactly after the wait that the store returned', async () => {
    const { clock, takes, block, fates } = setup()
    const calls = block('a', 500, 2)
    takes.length = 0
    await clock.advance(499)
    expect(takes).toEqual([])
    await clock.advance(1)
    expect([takes.length, fates(calls)]).toEqual([1, ['admitted', 'admitted']])
  })

  it('each blocked lane has a timer of its own', async () => {
    const { clock, block, fates } = setup()
    const calls = [...block('a', 500), ...block('b', 200)]
    await clock.advance(200)
    expect(fates(calls)).toEqual([undefined, 'admitted'])
    await clock.advance(300)
    expect(fates(calls)).toEqual(['admitted', 'admitted'])
  })

  it('the pace starts calls when it allows them', async () => {
    const { clock, pod, joinAll, fates } = setup({ paceMs: 40 })
    const calls = joinAll(2)
    await clock.advance(39)
    expect(fates(calls)).toEqual([undefined, undefined])
    pod.paceMs = 0
    await clock.advance(1)
    expect(fates(calls)).toEqual(['admitted', 'admitted'])
  })

  it('a pause that the store has ended starts its calls before its time', async () => {
    const { clock, store, join } = setup()
    store.reply = () => ({ granted: 0, waitUs: 5_000_000, paused: true })
    const call = join()
    store.reply = (calls) => ({ granted: calls })
    store.pausedMs = 0
    await clock.advance(999)
    expect(call.fate).toBeUndefined()
    await clock.advance(1)
    expect(call.fate).toBe('admitted')
  })

  it('a request whose reply was lost is sent again 25 ms later', async () => {
    const { clock, takes, join, lose, reply } = setup({ remote: true })
    const call = join()
    await clock.settle()
    await lose()
    expect([takes.length, call.fate]).toEqual([1, undefined])
    await clock.advance(24)
    expect(takes).toHaveLength(1)
    await clock.advance(1)
    expect(takes).toHaveLength(2)
    await reply({ granted: 1 })
    expect(call.fate).toBe('admitted')
  })

  it('the wait for the pace is no sign of overload', async () => {
    const { clock, queue, joinAll } = setup({ paceMs: 40 })
    const excluded = vi.spyOn(queue, 'excludeWait')
    await clock.advance(1_000)
    joinAll(3)
    expect(excluded).toHaveBeenCalledWith('a', 1_040)
  })

  it('without a queue, calls of a lane on a round trip wait for its reply', async () => {
    const { clock, join, reply } = setup({ remote: true, mayWait: false })
    const first = join()
    await clock.settle()
    const second = join()
    await clock.settle()
    expect([first.fate, second.fate]).toEqual([undefined, undefined])
    await reply({ granted: 1 })
    await reply({ granted: 1 })
    expect([first.fate, second.fate]).toEqual(['admitted', 'admitted'])
  })

  it('without a queue, a call of a blocked lane is refused with the time left', async () => {
    const { clock, block, join } = setup({ mayWait: false })
    await clock.advance(1_000)
    expect(block('a', 500)[0]?.fate).toBe('refused: a limited for 500 ms')
    const full = setup({ mayWait: false, paceMs: 10 })
    await full.clock.advance(1_000)
    expect(full.join('a').fate).toBe('refused: busy: pace')
    expect(join('b').fate).toBe('admitted')
  })

  it('a pause holds every call until its end, also when limits are raised', async () => {
    const { clock, dispatcher, join } = setup()
    dispatcher.pauseUntil('a', 300)
    const call = join('a')
    dispatcher.unblock('a')
    dispatcher.unblockAll()
    await clock.advance(299)
    expect(call.fate).toBeUndefined()
    await clock.advance(1)
    expect(call.fate).toBe('admitted')
  })

  it('capacity that becomes free ends the wait of its lane, or of all lanes', () => {
    const { dispatcher, block, fates } = setup()
    const calls = [...block('a', 500), ...block('b', 500), ...block('c', 500)]
    dispatcher.unblock('b')
    dispatcher.unblock('unknown')
    expect(fates(calls)).toEqual([undefined, 'admitted', undefined])
    dispatcher.unblockAll()
    expect(fates(calls)).toEqual(['admitted', 'admitted', 'admitted'])
  })

  it('permits that were not used in time are requested again 25 ms later', async () => {
    const { clock, dispatcher, join } = setup()
    await clock.advance(100)
    dispatcher.requestLater('a')
    expect(dispatcher.blocks.of('a').lostRoundTrips).toBe(1)
    const call = join('a')
    // A call that joins an empty lane requests a permit at once.
    expect(call.fate).toBe('admitted')
    dispatcher.blocks.of('b').lostRoundTrips = 3
    dispatcher.requestLater('b')
    const { lostRoundTrips, blockedUntilMs } = dispatcher.blocks.of('b')
    expect([lostRoundTrips, blockedUntilMs]).toEqual([3, 125])
  })
})

describe('calls that wait for the pod', () => {
  it('calls of blocked lanes wait for their limits, all others for the pod', () => {
    const { pod, block, joinAll, dispatcher } = setup()
    block('a', 500, 2)
    expect(dispatcher.waitingForPod(0)).toBe(0)
    pod.paceMs = 1
    joinAll(3, 'b')
    expect(dispatcher.waitingForPod(0)).toBe(3)
    expect(dispatcher.waitingForPod(500)).toBe(5)
    const single = setup({ paceMs: 1 })
    single.joinAll(4)
    expect(single.dispatcher.waitingForPod(0)).toBe(4)
  })

  it('the backlog contains no calls of lanes that wait for their limits', () => {
    const { block, joinAll, dispatcher } = setup({ slots: 2 })
    block('a', 500, 5)
    expect(dispatcher.backlog(0)).toBe(0)
    joinAll(4, 'b')
    expect(dispatcher.backlog(0)).toBe(2)
  })

  it('the backlog is the part that does not fit into the free slots of pod and lanes', async () => {
    const { clock, joinAll, dispatcher } = setup({ slots: 6, remote: true, lanes: { a: 2 } })
    joinAll(3, 'a')
    joinAll(3, 'b')
    expect(dispatcher.backlog(0)).toBe(1)
    joinAll(4, 'b')
    expect(dispatcher.backlog(0)).toBe(4)
    await clock.settle()
    expect(dispatcher.backlog(0)).toBe(4)
  })

  it('a blocked lane is in the backlog only while its round trips are lost', () => {
    const { block, dispatcher } = setup()
    block('a', 500, 3)
    expect(dispatcher.backlog(0)).toBe(0)
    dispatcher.blocks.of('a').lostRoundTrips = 1
    expect(dispatcher.backlog(0)).toBe(3)
  })

  it('the longest wait counts calls that wait for the pod, and those of the own lane', async () => {
    const { clock, pod, block, join, dispatcher } = setup()
    block('a', 5_000)
    await clock.advance(100)
    pod.paceMs = 1
    join('b')
    await clock.advance(50)
    const nowMs = clock.now()
    expect(dispatcher.oldestWaitMs(nowMs, 'b')).toBe(50)
    expect(dispatcher.oldestWaitMs(nowMs, 'a')).toBe(150)
  })

  it('free slots allow more calls than the size of the queue, except in a blocked lane', () => {
    const { block, dispatcher } = setup({ slots: 5, lanes: { c: 3 } })
    const [call] = block('a', 500)
    expect(dispatcher.spare('a', call as Call, 0)).toBe(0)
    expect(dispatcher.spare('b', call as Call, 0)).toBe(5)
    expect(dispatcher.spare('c', call as Call, 0)).toBe(3)
  })
})

describe('calls that the dispatcher refuses', () => {
  it('an emptied lane refuses its waiting calls and those on a round trip', async () => {
    const { clock, queue, joinAll, dispatcher, fates } = setup({ remote: true, slots: 2 })
    const calls = [...joinAll(3, 'a'), ...joinAll(1, 'b')]
    await clock.settle()
    dispatcher.empty('a', (lane) => new Error(`${lane} is open`))
    expect(fates(calls)).toEqual([...Array(3).fill('refused: a is open'), undefined])
    expect(queue.lengthOf('a')).toBe(0)
    dispatcher.empty(undefined, (lane) => new Error(`${lane} too`))
    expect(fates(calls).at(-1)).toBe('refused: b too')
  })

  it('a lane is emptied until there is no more error to refuse calls with', () => {
    const { pod, joinAll, dispatcher, fates } = setup()
    pod.paceMs = 1
    const calls = joinAll(3)
    let left = 2
    dispatcher.empty('a', () => (left-- > 0 ? new Error('open') : undefined))
    expect(fates(calls)).toEqual(['refused: open', 'refused: open', undefined])
    dispatcher.empty('unknown', () => new Error('open'))
  })

  it.each([
    [{ slots: 0 }, 'refused: busy: concurrency'],
    [{ paceMs: 1 }, 'refused: busy: pace'],
  ])('without a queue, a call is refused with %j', (settings, fate) => {
    const { join } = setup({ mayWait: false, ...settings })
    expect(join().fate).toBe(fate)
  })

  it('without a queue, a call that its limits refuse learns how long to wait', () => {
    const { block, fates } = setup({ mayWait: false })
    expect(fates(block('a', 500))).toEqual(['refused: a limited for 500 ms'])
  })

  it('without a queue, a call on a round trip waits for its reply', async () => {
    const { clock, join, takes, reply } = setup({ mayWait: false, remote: true })
    const call = join()
    await clock.settle()
    expect([call.fate, takes[0]?.waitMs]).toEqual([undefined, 0])
    await reply({ granted: 1 })
    expect(call.fate).toBe('admitted')
  })

  it('a closed dispatcher waits for the reply that is on its way', async () => {
    const { clock, join, dispatcher, reply } = setup({ remote: true })
    join()
    await clock.settle()
    let closed = false
    const closing = dispatcher.close().then(() => {
      closed = true
    })
    await clock.settle()
    expect(closed).toBe(false)
    await reply({ granted: 1 })
    await closing
    expect(closed).toBe(true)
  })
})
