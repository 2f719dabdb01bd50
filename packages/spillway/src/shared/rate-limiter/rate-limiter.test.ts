import { describe, expect, it } from 'vitest'
import { createDeadline, runWithDeadline } from '../../core/time/deadline.js'
import { sleep } from '../../core/time/sleep.js'
import { memoryStore } from '../../store/memory/memory-store.js'
import type { LimitStore, Store } from '../../store/port.js'
import { createVirtualClock, type VirtualClock } from '../../testing/virtual-clock.js'
import { createRateLimiter } from '../index.js'
import type { SharedRateLimiterOptions } from './api.js'
import { createSharedRateLimiter } from './rate-limiter.js'

type Fault = 'lose-request' | 'lose-reply' | 'late'

/** A remote store: each round trip takes 2 ms, is counted and may fail. */
function distantStore(clock: VirtualClock) {
  const near = memoryStore({ clock })
  const faults: Fault[] = []
  const roundTrips: Record<string, number> = {}
  const far =
    <Q, A>(name: string, run: (request: Q) => A | Promise<A>) =>
    async (request: Q): Promise<A> => {
      roundTrips[name] = (roundTrips[name] ?? 0) + 1
      const fault = faults.shift()
      await sleep(clock, 1)
      if (fault === 'lose-request') throw new Error('not sent')
      const answer = await run(request)
      await sleep(clock, fault === 'late' ? 500 : 1)
      if (fault === 'lose-reply') throw new Error('no reply')
      return answer
    }
  const limits: LimitStore = {
    take: far('take', near.limits.take),
    settle: far('settle', near.limits.settle),
    book: near.limits.book,
    feedback: far('feedback', near.limits.feedback),
    pause: near.limits.pause,
    change: far('change', near.limits.change),
    figures: near.limits.figures,
    report: near.limits.report,
    watch: near.limits.watch,
  }
  const store: Store = { ...near, limits }
  return { store, faults, roundTrips }
}

function setup(options: Partial<SharedRateLimiterOptions> = {}) {
  const clock = createVirtualClock()
  const distant = distantStore(clock)
  const create = () =>
    createSharedRateLimiter({
      name: 'openai',
      store: distant.store,
      limits: [{ limit: 10, windowMs: '1s' }],
      clock,
      ...options,
    })
  return { clock, ...distant, limiter: create(), create }
}

const used = async (limiter: ReturnType<typeof setup>['limiter']) =>
  (await limiter.figures()).limits.map((limit) => limit.used)

describe('batching of permit requests', () => {
  const limits = [{ limit: 150, windowMs: '1m' }] as const
  const expectFirst = (answers: readonly { allowed: boolean }[], count: number) => {
    expect(answers.map(({ allowed }) => allowed).lastIndexOf(true)).toBe(count - 1)
    expect(answers.filter(({ allowed }) => allowed)).toHaveLength(count)
  }

  it('a cost that the caller changes after acquire() is charged as it was', async () => {
    const { clock, limiter } = setup({ limits: [{ unit: 'tokens', limit: 150, windowMs: '1m' }] })
    const cost = { tokens: 10 }
    const acquired = limiter.acquire({ cost })
    cost.tokens = 100
    expect((await clock.until(acquired)).allowed).toBe(true)
    expect(await clock.until(used(limiter))).toEqual([10])
  })

  it('permit requests of one turn share one round trip and are granted in order', async () => {
    const { clock, limiter, roundTrips } = setup({ limits })
    const acquisitions = Array.from({ length: 200 }, () => limiter.acquire())
    expectFirst(await clock.until(Promise.all(acquisitions)), 150)
    expect(roundTrips.take).toBe(1)
  })

  it('requests made during a round trip share the next one and are granted in order', async () => {
    const { clock, limiter, roundTrips } = setup({ limits })
    const first = limiter.acquire()
    await clock.advance(1)
    const meanwhile = Array.from({ length: 199 }, () => limiter.acquire())
    expectFirst(await clock.until(Promise.all([first, ...meanwhile])), 150)
    expect(roundTrips.take).toBe(2)
  })

  it('a request aborted before the round trip begins is not sent', async () => {
    const { clock, limiter, roundTrips } = setup()
    const abort = new AbortController()
    const leaving = limiter.acquire({ signal: abort.signal })
    abort.abort(new Error('left'))
    await expect(leaving).rejects.toThrow('left')
    await clock.advance(10)
    expect(roundTrips.take).toBeUndefined()
  })

  it('a single request is sent without waiting for others', async () => {
    const { clock, limiter } = setup()
    await clock.until(limiter.acquire())
    expect(clock.now()).toBe(2)
  })

  it('no round trip is made while the first request waits for a known time', async () => {
    const { clock, limiter, roundTrips } = setup()
    await clock.until(limiter.takeUpTo(10))
    const waiting = Array.from({ length: 10 }, () => limiter.acquireWithin('5s'))
    const impatient = [300, 400, 500].map((ms) => limiter.acquireWithin(ms))
    const before = roundTrips.take ?? 0
    await clock.advance(900)
    expect((await Promise.all(impatient)).map(({ allowed }) => allowed)).toEqual([
      false,
      false,
      false,
    ])
    expect((roundTrips.take ?? 0) - before).toBeLessThanOrEqual(1)
    const answers = await clock.until(Promise.all(waiting))
    expect(answers.every(({ allowed }) => allowed)).toBe(true)
  })
})

describe('waiting for a permit', () => {
  it('a waiting request is granted at the exact time, or refused at once if that is too late', async () => {
    const { clock, limiter } = setup()
    await clock.until(limiter.takeUpTo(10))
    const refused = await clock.until(limiter.acquireWithin(100))
    expect(refused).toMatchObject({ allowed: false, paused: false })
    expect(clock.now()).toBeLessThan(10)
    const startMs = clock.now()
    const retryAfterMs = refused.allowed ? 0 : refused.retryAfterMs
    await expect(clock.until(limiter.acquireWithin('5s'))).resolves.toMatchObject({ allowed: true })
    expect(clock.now() - startMs - retryAfterMs).toBeLessThan(5)
  })

  it('requests that do not wait get the same share as larger ones of another pod that wait', async () => {
    const { clock, limiter, create } = setup({
      limits: [{ limit: 100, windowMs: '1s', algorithm: 'token-bucket', burst: 10 }],
    })
    const hasty = create()
    let [waited, taken] = [0, 0]
    const waitAgain = async (): Promise<void> => {
      const { allowed } = await limiter.acquireWithin('10m', { cost: { requests: 5 } })
      if (!allowed) return
      waited += 5
      await waitAgain()
    }
    const waiting = Promise.allSettled(Array.from({ length: 30 }, waitAgain))
    for (let request = 0; request < 1_000; request++) {
      if ((await clock.until(hasty.acquire())).allowed) taken++
      await clock.until(sleep(clock, 3))
    }
    expect(waited + taken).toBeGreaterThan(400)
    expect(Math.abs(taken - waited) / (waited + taken)).toBeLessThan(0.2)
    await clock.until(Promise.all([limiter.close(), waiting]))
  })

  it('a waiting request is refused if its deadline comes first', async () => {
    const { clock, limiter } = setup()
    await clock.until(limiter.takeUpTo(10))
    const hurried = runWithDeadline(createDeadline(50, clock), () => limiter.acquireWithin('1h'))
    await expect(clock.until(hurried)).resolves.toMatchObject({ allowed: false })
    expect(clock.now()).toBeLessThan(60)
  })

  it('a waiting request does not overtake an earlier, larger one', async () => {
    const { clock, limiter } = setup()
    await clock.until(limiter.takeUpTo(5))
    const order: string[] = []
    const large = limiter
      .acquireWithin('5s', { cost: { requests: 8 } })
      .then(() => order.push('large'))
    const small = limiter.acquireWithin('5s').then(() => order.push('small'))
    await clock.until(Promise.all([large, small]))
    expect(order).toEqual(['large', 'small'])
  })

  it('the permit of an aborted request goes to the next one', async () => {
    const { clock, limiter } = setup({ limits: [{ limit: 1, windowMs: '1m' }] })
    const abort = new AbortController()
    const leaving = limiter.acquireWithin('1s', { signal: abort.signal })
    const staying = limiter.acquireWithin('1s')
    await clock.advance(1)
    abort.abort(new Error('left'))
    await expect(leaving).rejects.toThrow('left')
    await expect(clock.until(staying)).resolves.toMatchObject({ allowed: true })
    expect(await used(limiter)).toEqual([1])
  })

  it('a permit that no request can use is returned', async () => {
    const { clock, limiter } = setup()
    const abort = new AbortController()
    const leaving = limiter.acquireWithin('1s', { cost: { requests: 4 }, signal: abort.signal })
    await clock.advance(1)
    abort.abort(new Error('left'))
    await expect(leaving).rejects.toThrow('left')
    await clock.advance(20)
    expect(await used(limiter)).toEqual([0])
  })
})

describe('failed round trips', () => {
  it('a round trip whose reply was lost counts as spent and is repeated', async () => {
    const { clock, limiter, faults, roundTrips } = setup()
    faults.push('lose-reply')
    await expect(clock.until(limiter.acquire())).resolves.toMatchObject({ allowed: true })
    expect(roundTrips.take).toBe(2)
    expect(await used(limiter)).toEqual([2])
  })

  it('repeated failures reject with STORE_UNAVAILABLE instead of a refusal', async () => {
    const { clock, limiter, faults } = setup()
    faults.push('lose-request', 'lose-reply', 'lose-reply', 'lose-reply', 'lose-request')
    await expect(clock.until(limiter.acquire())).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      stage: 'vendor-limit',
      scope: 'shared',
      cause: { message: 'not sent' },
    })
    await expect(clock.until(limiter.acquire())).resolves.toMatchObject({ allowed: true })
  })

  it('time until the first connection does not make the first permit late', async () => {
    const clock = createVirtualClock()
    const { store, roundTrips } = distantStore(clock)
    const pulses: Store['pulses'] = {
      pulse: async (request) => {
        await sleep(clock, 400)
        return store.pulses.pulse(request)
      },
    }
    const limiter = createSharedRateLimiter({
      name: 'openai',
      store: { ...store, remote: true, pulses },
      limits: [{ limit: 10, windowMs: '1s' }],
      clock,
    })
    expect(await clock.until(limiter.acquire())).toMatchObject({ allowed: true })
    expect(roundTrips).toEqual({ take: 1 })
    await clock.until(limiter.close())
  })

  it("a permit that arrives too late for the vendor's window is returned and requested again", async () => {
    const { clock, limiter, faults, roundTrips } = setup()
    faults.push('late')
    await expect(clock.until(limiter.acquire())).resolves.toMatchObject({ allowed: true })
    await clock.advance(10)
    expect(roundTrips.take).toBe(2)
    expect(await used(limiter)).toEqual([1])
  })
})

describe('settling', () => {
  const limits = [{ unit: 'tokens', limit: 1_000, windowMs: '1m' }] as const

  it('settle() refunds unused cost and charges excess cost exactly once', async () => {
    const { clock, limiter } = setup({ limits })
    const ask = async (tokens: number) => {
      const answer = await clock.until(limiter.acquire({ cost: { tokens } }))
      return answer.allowed ? answer.permit : undefined
    }
    const [less, more, none] = [await ask(300), await ask(300), await ask(300)]
    less?.settle({ tokens: 100 })
    less?.settle({ tokens: 0 })
    more?.settle({ tokens: 450 })
    none?.refund()
    await clock.advance(50)
    expect(await used(limiter)).toEqual([550])
  })

  it('the debt after settling is at most one limit', async () => {
    const { clock, limiter } = setup({ limits })
    const answer = await clock.until(limiter.acquire({ cost: { tokens: 10 } }))
    if (answer.allowed) answer.permit.settle({ tokens: 1_000_000 })
    await clock.advance(50)
    expect(await used(limiter)).toEqual([2_000])
  })

  it('a settlement is sent until it arrives and counts once', async () => {
    const { clock, limiter, faults, roundTrips } = setup({ limits })
    const answer = await clock.until(limiter.acquire({ cost: { tokens: 500 } }))
    faults.push('lose-reply', 'lose-request', 'lose-reply')
    if (answer.allowed) answer.permit.settle({ tokens: 400 })
    await clock.until(limiter.close())
    expect(roundTrips.settle).toBe(4)
    expect(await used(limiter)).toEqual([400])
  })

  it('an estimate above the limit is lowered to the limit', async () => {
    const { clock, limiter } = setup({ limits })
    const answer = await clock.until(limiter.acquire({ cost: { tokens: 5_000 } }))
    expect(answer).toMatchObject({ allowed: true, permit: { cost: { tokens: 1_000 } } })
  })
})

describe('changing limits', () => {
  it('other pods learn changed limits with their next round trip', async () => {
    const { clock, limiter, create } = setup()
    const other = create()
    await clock.until(limiter.takeUpTo(4))
    await clock.until(limiter.setLimits([{ limit: 5, windowMs: '1s' }]))
    const acquisitions = Array.from({ length: 10 }, () => other.acquire())
    const answers = await clock.until(Promise.all(acquisitions))
    expect(answers.filter(({ allowed }) => allowed)).toHaveLength(1)
    await clock.until(other.setLimits([{ limit: 20, windowMs: '1s' }]))
    expect(await clock.until(limiter.takeUpTo(30))).toHaveLength(15)
  })

  it('override() changes a limit for a limited time', async () => {
    const { clock, limiter } = setup()
    await clock.until(limiter.override('requests', 2, '10s'))
    expect(await clock.until(limiter.takeUpTo(20))).toHaveLength(2)
    await clock.advance(11_000)
    expect(await clock.until(limiter.takeUpTo(20))).toHaveLength(10)
    await expect(limiter.override('tokens', 2, '1s')).rejects.toThrow("no limit on 'tokens'")
  })
})

describe('waiting for other pods', () => {
  it('a message that overtakes the refusal of its call still wakes the call', async () => {
    const clock = createVirtualClock()
    const near = memoryStore({ clock })
    // Requests run at once, replies take 20 ms, messages none.
    const far: Store = {
      ...near,
      limits: {
        ...near.limits,
        async take(request) {
          const reply = await near.limits.take(request)
          await sleep(clock, 20)
          return reply
        },
      },
    }
    const options = { name: 'vendor', limits: [{ limit: 1, windowMs: '1h' }], clock } as const
    const one = createSharedRateLimiter({ ...options, store: near, jitterMs: 100 })
    const other = createSharedRateLimiter({ ...options, store: far, jitterMs: 100 })
    const permitOf = async (limiter: typeof one) => {
      const answer = await clock.until(limiter.acquireWithin('2h'))
      return answer.allowed ? answer.permit : undefined
    }
    const held = await permitOf(one)
    const first = other.acquireWithin('2h')
    await clock.advance(100)
    held?.refund()
    const granted = await clock.until(first)
    if (granted.allowed) granted.permit.refund()
    await clock.advance(100)
    const again = await permitOf(one)
    const second = other.acquireWithin('2h')
    await clock.advance(5)
    again?.refund()
    await clock.advance(1_000)
    await expect(Promise.race([second, 'asleep'])).resolves.toMatchObject({ allowed: true })
    await clock.until(Promise.all([one.close(), other.close()]))
  })
})

describe('rate limiter close()', () => {
  it('close() refuses waiting and later requests and leaves no timer', async () => {
    const { clock, limiter } = setup()
    await clock.until(limiter.takeUpTo(10))
    const waiting = limiter.acquireWithin('1m').catch((error) => error.code)
    await clock.advance(10)
    await clock.until(limiter.close())
    await expect(waiting).resolves.toBe('SHUTTING_DOWN')
    await expect(limiter.acquire()).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
    expect(clock.pending).toBe(0)
  })
})

describe('rate limiter costs', () => {
  const limits = [{ unit: 'tokens', limit: 1_000, windowMs: '1m' }] as const

  it('each request books its own cost when costs name different units in turn', async () => {
    const requests = { unit: 'requests', limit: 1_000, windowMs: '1m' } as const
    const { clock, limiter } = setup({ limits: [...limits, requests] })
    const costs = [{ tokens: 5, requests: 2 }, { tokens: 5 }, { tokens: 5, requests: 2 }, undefined]
    const all = costs.map((cost) => limiter.acquire({ ...(cost && { cost }) }))
    const booked = (await clock.until(Promise.all(all))).map((each) =>
      each.allowed ? each.permit.cost : undefined,
    )
    expect(booked).toEqual([
      { tokens: 5, requests: 2 },
      { tokens: 5, requests: 1 },
      { tokens: 5, requests: 2 },
      { tokens: 0, requests: 1 },
    ])
  })

  it('a cost in an unknown unit is rejected with a suggestion', async () => {
    const { limiter, roundTrips } = setup({ limits })
    const wrong = limiter.acquire({ cost: { tokns: 5 } })
    await expect(wrong).rejects.toThrow(TypeError)
    await expect(wrong).rejects.toThrow("cost.tokns: no limit on 'tokns'; did you mean 'tokens'?")
    await expect(limiter.acquireWithin('1s', { cost: { images: 1 } })).rejects.toThrow(
      "cost.images: no limit on 'images'; known: requests, tokens",
    )
    expect(roundTrips.take).toBeUndefined()
  })

  it('a cost may name a unit whose limit was removed, and always requests', async () => {
    const { clock, limiter } = setup({ limits })
    await clock.until(limiter.setLimits([{ unit: 'images', limit: 5, windowMs: '1m' }]))
    const cost = { requests: 1, tokens: 300, images: 2 }
    const answer = await clock.until(limiter.acquire({ cost }))
    expect(answer).toMatchObject({ allowed: true, permit: { cost: { images: 2 } } })
  })
})

describe('shared rate limiter options', () => {
  it('shared rate limiter names the invalid option', () => {
    const wrong = (options: object) => () => setup(options as Partial<SharedRateLimiterOptions>)
    expect(wrong({ limits: [] })).toThrow('sharedRateLimiter.limits: must be 1 to 16 limits')
    expect(wrong({ limits: [{ limit: 0, windowMs: 1 }] })).toThrow(
      'sharedRateLimiter.limits[0].limit',
    )
    expect(wrong({ limits: [{ limit: 1, windowMs: 1, burst: 3 }] })).toThrow(
      "sharedRateLimiter.limits[0].burst: has an effect only with algorithm 'token-bucket'",
    )
    expect(wrong({ store: {} })).toThrow('sharedRateLimiter.store: must be a store')
    expect(wrong({ jiterMs: 5 })).toThrow("did you mean 'jitterMs'?")
  })

  it.each([
    ['request', 'requests'],
    ['Requests', 'requests'],
    ['token', 'tokens'],
    ['tokns', 'tokens'],
    ['input_tokens', 'inputTokens'],
    ['outputToken', 'outputTokens'],
  ])("the unit %s of a limit is refused, did you mean '%s'", (unit, close) => {
    expect(() => setup({ limits: [{ unit, limit: 1, windowMs: '1m' }] })).toThrow(
      `sharedRateLimiter.limits[0].unit: no call is charged in '${unit}'; did you mean '${close}'? A unit of your own needs another name`,
    )
  })

  it.each([
    'images',
    'tickets',
    'cachedTokens',
    'audioInputTokens',
    'requests@opus',
    'micro-dollars',
  ])('a limit may count %s, a unit of the application', (unit) => {
    expect(() => setup({ limits: [{ unit, limit: 1, windowMs: '1m' }] })).not.toThrow()
  })
})

it('createRateLimiter of spillway/shared throws and names createSharedRateLimiter', () => {
  expect(() => createRateLimiter()).toThrow('use createSharedRateLimiter')
})
