import { describe, expect, it } from 'vitest'
import { fc } from '../../test/fast-check.js'
import { createRandom } from '../core/random.js'
import { memoryStore } from '../store/memory/memory-store.js'
import type {
  BeatReply,
  BreakerCommand,
  BreakerView,
  LaneRef,
  Store,
  TakeRequest,
} from '../store/port.js'
import { StoreFailure } from '../store/store-failure.js'
import { createFaultyStore, type FaultyStoreOptions } from './faulty-store.js'
import { createVirtualClock } from './virtual-clock.js'

const lane: LaneRef = {
  guard: 'openai',
  lane: 'default',
  version: 0,
  limits: [
    {
      id: 'requests',
      algorithm: 'sliding-window',
      limit: 1_000,
      windowUs: 60_000_000,
      slices: 30,
      burst: 0,
      span: 'lane',
    },
  ],
}
const one: TakeRequest = { ...lane, costs: [[1]] }

const trip: BreakerCommand = {
  guard: 'openai',
  lane: 'default',
  spec: {
    consecutive: 3,
    failureRate: 0,
    slowRate: 0,
    windowUs: 30_000_000,
    windowCalls: 0,
    minimumCalls: 10,
    openUs: 30_000_000,
    openFactor: 1,
    maxOpenUs: 300_000_000,
    probes: 3,
    successes: 2,
    probeLeaseUs: 5_000_000,
    quorum: 1,
  },
  command: { kind: 'trip' },
}

function setup(options: Partial<FaultyStoreOptions> = {}) {
  const clock = createVirtualClock()
  const stores: Store[] = []
  const make = () => {
    const made = memoryStore({ clock })
    stores.push(made)
    return made
  }
  const random = createRandom(1)
  const store = createFaultyStore(make, { clock, random, latencyMs: 10, ...options })
  /** Units the inner store has booked, read without a round trip. */
  const used = async () => {
    const figures = await (stores.at(-1) as Store).limits.figures(lane)
    return figures.limits[0]?.used
  }
  return { clock, store, stores, used }
}

/** Records how and when a promise settled. */
function watch(promise: unknown, clock: { now(): number }) {
  const seen: { atMs?: number; kind?: string; value?: unknown } = {}
  Promise.resolve(promise).then(
    (value) => Object.assign(seen, { atMs: clock.now(), kind: 'answer', value }),
    (error) => {
      const kind = error instanceof StoreFailure ? error.kind : 'another error'
      Object.assign(seen, { atMs: clock.now(), kind })
    },
  )
  return seen
}

describe('faulty store', () => {
  it('a command runs after half of the latency and its reply arrives after the rest', async () => {
    const { clock, store, used } = setup()
    const seen = watch(store.limits.take(one), clock)
    await clock.advance(4.9)
    expect(await used()).toBe(0)
    await clock.advance(0.2)
    expect(await used()).toBe(1)
    expect(seen).toEqual({})
    await clock.advance(4.9)
    expect(seen).toMatchObject({ atMs: 10, kind: 'answer', value: { granted: 1 } })
    expect(store.counts).toMatchObject({ sent: 1, executed: 1, answered: 1, ambiguous: 0 })
  })

  it('faulty store supports every command of the inner store', async () => {
    const { clock, store } = setup()
    const ask = async () => {
      const pod = { group: 'fleet', pod: 'a' }
      await store.limits.settle({ ...lane, pod: 'a', sequence: 1, settlements: [] })
      await store.limits.report({ guard: 'openai', pod: 'a', requests: 3 })
      const { requestsLastMinute } = await store.limits.figures(lane)
      const levels = [{ key: 'user', limit: 1, windowUs: 1_000_000, burst: 1 }]
      const replies = await store.levels.check([{ levels, cost: 1 }])
      const views = await store.breakers.sync([{ ...trip, renew: [] }])
      const { live } = await store.pods.beat({ ...pod, lifeUs: 1_000_000, snapshot: '' })
      const list = await store.pods.list({ group: 'fleet' })
      await store.pods.leave(pod)
      return [requestsLastMinute, replies[0]?.refusedBy, views[0]?.kind, live, list.length]
    }
    expect(await clock.until(ask())).toEqual([3, 0, 0, 1, 1])
    expect(clock.now()).toBe(80)
  })

  it('replies never overtake earlier ones, however the latency varies', async () => {
    const latencies = fc.array(fc.double({ min: 0, max: 90, noNaN: true }), { minLength: 2 })
    await fc.assert(
      fc.asyncProperty(latencies, async (drawn) => {
        let next = 0
        const { clock, store } = setup({
          latencyMs: () => drawn[next++] as number,
          commandTimeoutMs: 10_000,
        })
        const order: number[] = []
        const stamps: number[] = []
        for (const index of drawn.keys()) {
          void Promise.resolve(store.limits.take(one)).then(({ nowUs }) => {
            order.push(index)
            stamps.push(nowUs)
          })
          await clock.advance(1.1)
        }
        await clock.drain()
        expect(order).toEqual([...drawn.keys()])
        expect(stamps).toEqual(stamps.toSorted((a, b) => a - b))
      }),
    )
  })

  it('faulty store keeps the order of an inner store that is slow', async () => {
    const clock = createVirtualClock()
    const near = memoryStore({ clock })
    const releases: (() => void)[] = []
    const report = () => new Promise<void>((resolve) => releases.push(resolve))
    const inner: Store = { ...near, limits: { ...near.limits, report } }
    const store = createFaultyStore(inner, { clock, random: createRandom(1) })
    const first = watch(store.limits.report({ guard: 'a', pod: 'a', requests: 1 }), clock)
    const second = watch(store.limits.figures(lane), clock)
    await clock.advance(20)
    expect(second).toEqual({})
    releases[0]?.()
    await clock.advance(1)
    expect([first.kind, second.kind]).toEqual(['answer', 'answer'])
  })

  it('faulty store wraps class methods and ignores their replies after an outage', async () => {
    const clock = createVirtualClock()
    const near = memoryStore({ clock })
    class Pods {
      readonly beats: string[] = []
      leave = near.pods.leave
      list = near.pods.list
      sendCommand = near.pods.sendCommand

      beat({ pod }: { pod: string }): Promise<BeatReply> {
        this.beats.push(pod)
        // The first command is never answered.
        return new Promise((resolve) => {
          if (this.beats.length > 1) resolve({ live: this.beats.length, command: '' })
        })
      }
    }
    const store = createFaultyStore(
      { ...near, pods: new Pods() },
      { clock, random: createRandom(1) },
    )
    const beat = () => store.pods.beat({ group: 'fleet', pod: 'a', lifeUs: 1, snapshot: '' })
    const lost = watch(beat(), clock)
    await clock.advance(10)
    store.goDown()
    store.comeBack()
    expect(await clock.until(Promise.resolve(beat()))).toMatchObject({ live: 2 })
    expect(lost.kind).toBe('ambiguous')
  })

  it('requests and replies are copied, so later changes on one side stay there', async () => {
    const { clock, store, used } = setup()
    const costs = [[1]]
    const taken = store.limits.take({ ...lane, costs })
    costs.push([500])
    const reply = await clock.until(Promise.resolve(taken))
    expect(await used()).toBe(1)
    const views: BreakerView[] = []
    const listen = () =>
      store.breakers.watch({ onView: (...told) => views.push(told[2]), onGap() {} })
    listen()
    listen()
    await clock.advance(20)
    await clock.until(Promise.resolve(store.breakers.command(trip)))
    await clock.advance(20)
    expect(views).toHaveLength(2)
    expect(views[0]).toEqual(views[1])
    expect(views[0]).not.toBe(views[1])
    expect(reply.granted).toBe(1)
  })

  it('an error of the inner store becomes a server failure', async () => {
    const clock = createVirtualClock()
    const near = memoryStore({ clock })
    const list = () => {
      throw new RangeError('out of memory')
    }
    const inner: Store = { ...near, pods: { ...near.pods, list } }
    const store = createFaultyStore(inner, { clock, random: createRandom(1) })
    const listed = Promise.resolve(store.pods.list({ group: 'fleet' }))
    await expect(clock.until(listed)).rejects.toMatchObject({
      kind: 'server',
      message: 'pods.list: out of memory',
    })
    expect(store.counts).toMatchObject({ executed: 1, errors: 1 })
  })
})

describe('injected faults', () => {
  it('a lost request never runs and fails as ambiguous after the timeout', async () => {
    const { clock, store, used } = setup()
    store.loseRequests(1)
    const seen = watch(store.limits.take(one), clock)
    await clock.drain()
    expect(seen).toEqual({ atMs: 100, kind: 'ambiguous' })
    expect(await used()).toBe(0)
    expect(store.counts).toMatchObject({ sent: 1, executed: 0, lostRequests: 1, ambiguous: 1 })
  })

  it('a command whose reply is lost runs once and fails as ambiguous', async () => {
    const { clock, store, used } = setup()
    store.loseReplies(1)
    const seen = watch(store.limits.take(one), clock)
    await clock.drain()
    expect(seen).toEqual({ atMs: 100, kind: 'ambiguous' })
    expect(await used()).toBe(1)
    expect(store.counts).toMatchObject({ executed: 1, lostReplies: 1, ambiguous: 1, answered: 0 })
    store.loseReplies(0)
    await clock.until(Promise.resolve(store.limits.take(one)))
    expect(await used()).toBe(2)
  })

  it('a slow command fails as ambiguous and still runs later', async () => {
    const { clock, store, used } = setup({ commandTimeoutMs: 50 })
    store.setLatency(300)
    const seen = watch(store.limits.take(one), clock)
    await clock.advance(149)
    expect(seen).toEqual({ atMs: 50, kind: 'ambiguous' })
    expect(await used()).toBe(0)
    await clock.advance(200)
    expect(await used()).toBe(1)
    expect(store.counts).toMatchObject({ executed: 1, answered: 0, lostReplies: 0 })
  })

  it('faulty store loses the configured share and accounts for every command', async () => {
    const { clock, store, used } = setup()
    store.loseRequests(0.1)
    store.loseReplies(0.2)
    const all = Array.from({ length: 1_000 }, () => watch(store.limits.take(one), clock))
    await clock.drain()
    const { sent, executed, lostRequests, lostReplies, answered, ambiguous } = store.counts
    expect(lostRequests / 1_000).toBeCloseTo(0.1, 1)
    expect(lostReplies / executed).toBeCloseTo(0.2, 1)
    expect(sent).toBe(lostRequests + executed)
    expect(executed).toBe(answered + lostReplies)
    expect(ambiguous).toBe(lostRequests + lostReplies)
    expect(all.filter(({ kind }) => kind === 'answer')).toHaveLength(answered)
    expect(await used()).toBe(executed)
  })

  it('an outage fails new commands as not-sent and those in flight as ambiguous', async () => {
    const { clock, store, used } = setup()
    const arrived = watch(store.limits.take(one), clock)
    await clock.advance(6)
    const onItsWay = watch(store.limits.take(one), clock)
    await clock.advance(1)
    store.goDown()
    const after = watch(store.limits.take(one), clock)
    await clock.settle()
    expect([arrived, onItsWay, after]).toEqual([
      { atMs: 7, kind: 'ambiguous' },
      { atMs: 7, kind: 'ambiguous' },
      { atMs: 7, kind: 'not-sent' },
    ])
    await clock.advance(100)
    expect(await used()).toBe(1)
    expect(store.counts).toMatchObject({ sent: 2, notSent: 1, lostRequests: 1, lostReplies: 1 })
    store.comeBack()
    await clock.until(Promise.resolve(store.limits.take(one)))
    expect(await used()).toBe(2)
  })

  it('restartEmpty() loses all state and all commands in flight', async () => {
    const { clock, store, used } = setup()
    await clock.until(Promise.resolve(store.limits.take(one)))
    const seen = watch(store.limits.take(one), clock)
    store.restartEmpty()
    await clock.settle()
    expect(seen.kind).toBe('ambiguous')
    expect(await used()).toBe(0)
    await clock.until(Promise.resolve(store.limits.take(one)))
    expect(await used()).toBe(1)
  })

  it('restartEmpty() of a faulty store that is down leaves it down', async () => {
    const { clock, store, stores } = setup()
    store.goDown()
    store.restartEmpty()
    expect([store.connected, stores.length]).toEqual([false, 2])
    expect(watch(store.limits.take(one), clock)).toEqual({})
    await clock.settle()
    store.comeBack()
    expect(store.connected).toBe(true)
  })

  it('restartEmpty() needs a factory instead of a store', () => {
    const clock = createVirtualClock()
    const store = createFaultyStore(memoryStore({ clock }), { clock, random: createRandom(1) })
    expect(() => store.restartEmpty()).toThrow('pass a function that creates the store')
  })

  it('after sever() commands already sent still run and no reply arrives', async () => {
    const { clock, store, used } = setup()
    const answering = watch(store.limits.take(one), clock)
    await clock.advance(6)
    const before = watch(store.limits.take(one), clock)
    store.sever()
    const after = watch(store.limits.take(one), clock)
    await clock.advance(1_000)
    expect([answering, before, after]).toEqual([{}, {}, {}])
    expect(await used()).toBe(2)
    expect(clock.pending).toBe(0)
  })

  it('faulty store names the invalid option or share', () => {
    const clock = createVirtualClock()
    const random = createRandom(1)
    const inner = memoryStore({ clock })
    const bad = { clock, random, latencyMs: -1, comandTimeoutMs: 5 }
    expect(() => createFaultyStore(inner, bad)).toThrow(/commandTimeoutMs[\s\S]*latencyMs/)
    const store = createFaultyStore(inner, { clock, random })
    expect(() => store.loseReplies(1.5)).toThrow('share: must be a number from 0 to 1, got 1.5')
    expect(() => store.setLatency(-5)).toThrow('latencyMs')
  })

  it('close() waits for commands in flight, refuses later ones and leaves no timer', async () => {
    const { clock, store } = setup()
    store.breakers.watch({ onView() {}, onGap() {} })
    const seen = watch(store.limits.take(one), clock)
    const closing = store.close()
    const after = watch(store.limits.take(one), clock)
    await clock.until(closing)
    expect([seen.kind, after.kind]).toEqual(['answer', 'not-sent'])
    expect(clock.pending).toBe(0)
  })
})

describe('push messages of the faulty store', () => {
  async function listening(options: Partial<FaultyStoreOptions> = {}) {
    const { clock, store, stores } = setup(options)
    const received: string[] = []
    const stop = store.breakers.watch({
      onView: (guard, name, { kind }) =>
        received.push(`${guard}/${name} ${kind} at ${clock.now()}`),
      onGap: () => received.push(`gap at ${clock.now()}`),
    })
    await clock.advance(10)
    /** A change by another pod, which costs this one no round trip. */
    const change = (kind: 'trip' | 'reset') =>
      (stores.at(-1) as Store).breakers.command({ ...trip, command: { kind } })
    return { clock, store, received, stop, change }
  }

  it('push messages arrive after half of the latency, following an initial gap', async () => {
    const { clock, received, change } = await listening()
    await change('trip')
    await clock.advance(4.9)
    expect(received).toEqual(['gap at 10'])
    await clock.advance(1)
    expect(received).toEqual(['gap at 10', 'openai/default 1 at 15'])
  })

  it('losePushes() drops push messages silently', async () => {
    const { clock, store, received, change } = await listening()
    store.losePushes(1)
    await change('trip')
    await clock.advance(1_000)
    store.losePushes(0)
    await change('reset')
    await clock.advance(1_000)
    expect(received).toEqual(['gap at 10', 'openai/default 0 at 1015'])
    expect(store.counts.lostPushes).toBe(1)
  })

  it('push messages are lost during an outage, and its end is reported as a gap', async () => {
    const { clock, store, received, change } = await listening()
    await change('trip')
    await clock.advance(1)
    store.goDown()
    await change('reset')
    await clock.advance(100)
    store.comeBack()
    await clock.advance(100)
    expect(received).toEqual(['gap at 10', 'gap at 121'])
    await change('trip')
    await clock.advance(100)
    expect(received).toHaveLength(3)
  })

  it('a watcher that starts during an outage receives messages after its end', async () => {
    const { clock, store, stop, change } = await listening()
    stop()
    store.goDown()
    const received: string[] = []
    store.breakers.watch({
      onView: (_, name) => received.push(name),
      onGap: () => received.push('gap'),
    })
    await change('trip')
    await clock.advance(100)
    expect(received).toEqual([])
    store.comeBack()
    await clock.advance(10)
    await change('reset')
    await clock.advance(10)
    expect(received).toEqual(['gap', 'default'])
  })

  it('push messages continue after a restart from the new store', async () => {
    const { clock, store, received, change } = await listening()
    store.restartEmpty()
    await clock.advance(10)
    await change('trip')
    await clock.advance(10)
    expect(received).toEqual(['gap at 10', 'gap at 20', 'openai/default 1 at 25'])
  })

  it('push messages end when the watcher stops', async () => {
    const { clock, store, received, stop, change } = await listening()
    await change('trip')
    stop()
    await change('reset')
    await clock.advance(100)
    expect(received).toEqual(['gap at 10'])
    expect(store.counts).toMatchObject({ pushed: 1, lostPushes: 1 })
  })
})
