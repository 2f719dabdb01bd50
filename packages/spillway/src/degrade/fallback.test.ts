import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { createDeadline, runWithDeadline } from '../core/deadline.js'
import { SpillwayError } from '../core/errors.js'
import { onEvent, type SpillwayEvent } from '../core/events.js'
import type { Guard } from '../guard/guard.js'
import type { GuardOptions } from '../guard/options.js'
import { createSpillway } from '../guard/spillway.js'
import { createVirtualClock } from '../testing/virtual-clock.js'
import { enqueue } from './enqueue.js'
import { staleCache } from './stale-cache.js'
import { otherGuard, reduced, staticValue } from './steps.js'

const clock = createVirtualClock()
const spillway = createSpillway({ clock })
let number = 0
const guardWith = (options: GuardOptions, name = `guard-${++number}`) =>
  spillway.guard(name, options)

const broken = (): Promise<never> => Promise.reject(new Error('connection reset'))
const counting = (value: unknown) => {
  const step = reduced(
    () => {
      calls.count++
      return value
    },
    { name: 'counted' },
  )
  const calls = { count: 0, step }
  return calls
}

describe('a guard with fallbacks', () => {
  it('gives the value of the call while that goes well, and says so', async () => {
    const guard = guardWith({ fallback: [staticValue('less')] })
    expect(await guard.run(() => 'all')).toBe('all')
    expect(await guard.runDegradable(() => 'all')).toEqual({
      value: 'all',
      degraded: false,
      reason: undefined,
      step: undefined,
      message: undefined,
    })
  })

  it('gives the first answer there is, and says why, by whom and in words', async () => {
    const guard = guardWith({ fallback: [reduced(broken), staticValue('less')] }, 'shop')
    expect(await guard.run(broken)).toBe('less')
    expect(await guard.runDegradable(broken)).toEqual({
      value: 'less',
      degraded: true,
      reason: 'error',
      step: 'static',
      message: 'shop: failed; a fixed answer',
    })
    const counts = [{ step: 'static', reason: 'error', count: 2 }]
    expect(guard.snapshot().fallbacks).toEqual(counts)
  })

  it('asks each fallback once for a call, however often the call was tried', async () => {
    const empty = counting(undefined)
    const full = counting('here')
    const guard = guardWith({
      retry: { attempts: 3, budget: 1, baseMs: 1, jitter: 'none' },
      fallback: [empty.step, { ...full.step, name: 'second' }],
    })
    const asked = guard.runDegradable(broken)
    await clock.advance(1_000)
    expect((await asked).step).toBe('second')
    expect([empty.count, full.count]).toEqual([1, 1])
  })

  it('asks a guard once, though two ways lead to it', async () => {
    let asked = 0
    const last = guardWith({})
    const middle = guardWith({ fallback: [last] })
    const first = guardWith({ fallback: [middle, last] })
    const fn = ({ guard }: { guard: string }) => {
      if (guard === last.name) asked++
      throw new Error('down')
    }
    await expect(first.run(fn)).rejects.toThrow('down')
    expect(asked).toBe(1)
  })

  it('throws the error of the call itself when nobody has an answer', async () => {
    const guard = guardWith({ fallback: [reduced(() => undefined), reduced(broken)] })
    const error = new Error('the first one')
    await expect(guard.run(() => Promise.reject(error))).rejects.toBe(error)
  })

  it('runs another guard under its own protection', async () => {
    const backup = guardWith({ concurrency: { limit: 1 } })
    const guard = guardWith({ fallback: [otherGuard(backup, () => 'from the other')] })
    const before = backup.snapshot().attempts
    const answer = await guard.runDegradable(broken)
    expect(answer).toMatchObject({ value: 'from the other', step: backup.name, reason: 'error' })
    expect(backup.snapshot().attempts).toBe(before + 1)
  })

  it('tells the same function by which guard it runs', async () => {
    const backup = guardWith({})
    const guard = guardWith({ fallback: [backup] })
    const call = ({ guard: name }: { guard: string }) =>
      name === backup.name ? `by ${name}` : broken()
    expect(await guard.run(call)).toBe(`by ${backup.name}`)
  })

  const reasons: [string, GuardOptions, () => unknown][] = [
    ['timeout', { timeout: { callMs: 5 } }, () => new Promise(() => {})],
    ['circuit-open', { breaker: { consecutiveFailures: 1, openMs: '1m' } }, broken],
    ['limited', { limits: [{ unit: 'requests', limit: 1, windowMs: '1h' }] }, () => 'used up'],
    ['shed', { shed: { when: () => true } }, () => 'never'],
    ['error', {}, broken],
  ]
  it.each(reasons)('says %s where that is the reason', async (reason, options, fn) => {
    const guard = guardWith({ ...options, fallback: [staticValue('less')] })
    // The first call opens the circuit or uses up the limit.
    const first = guard.run(fn)
    await clock.advance(10)
    await first
    const second = guard.runDegradable(fn)
    await clock.advance(10)
    expect((await second).reason).toBe(reason)
  })

  it('asks a fallback only for the reasons it is for', async () => {
    const guard = guardWith({
      fallback: [staticValue('a', { on: ['timeout'] }), staticValue('b', { on: ['error'] })],
    })
    expect(await guard.run(broken)).toBe('b')
  })

  it('makes no other call for somebody who has used up a limit of theirs', async () => {
    const backup = guardWith({})
    const guard = guardWith({
      userLimits: [{ per: 'user', limit: 1, windowMs: '1h' }],
      fallback: [backup, staticValue('come back later')],
    })
    await guard.run(() => 'ok', { user: 'ann' })
    const { value, reason } = await guard.runDegradable(() => 'ok', { user: 'ann' })
    expect([value, reason]).toEqual(['come back later', 'limited'])
    expect(backup.snapshot().calls).toBe(0)
  })

  it('has no answer to a wrong request, a mistake in options, or for somebody who has left', async () => {
    const guard = guardWith({ fallback: [staticValue('less')] })
    const notFound = Object.assign(new Error('no such product'), { status: 404 })
    await expect(guard.run(() => Promise.reject(notFound))).rejects.toBe(notFound)
    await expect(guard.run(() => 1, { timeoutMs: 'soon' as never })).rejects.toThrow('timeoutMs')
    const left = AbortSignal.abort(new Error('gone'))
    await expect(guard.run(() => 1, { signal: left })).rejects.toThrow('gone')
  })

  it('asks nobody else once the caller has left', async () => {
    const leaving = new AbortController()
    const late = counting('too late')
    const leaves = reduced(() => {
      leaving.abort(new Error('gone'))
      return undefined
    })
    const guard = guardWith({ fallback: [leaves, late.step] })
    await expect(guard.run(broken, { signal: leaving.signal })).rejects.toThrow('connection reset')
    expect(late.count).toBe(0)
  })

  it('gives a fallback the time that is left, and no more', async () => {
    const seen: (number | undefined)[] = []
    const backup = guardWith({})
    const look = otherGuard(backup, ({ deadline }) => {
      seen.push(deadline?.remainingMs())
      return 'ok'
    })
    const guard = guardWith({ timeout: { callMs: 30 }, fallback: [look] })
    const asked = guard.run(() => new Promise(() => {}), { timeoutMs: 100 })
    await clock.advance(30)
    await asked
    expect(seen).toEqual([70])
  })

  it('answers from memory though the deadline has passed', async () => {
    const guard = guardWith({ fallback: [reduced(() => 'slow'), staticValue('at once')] })
    const deadline = createDeadline(0, clock)
    const { value, reason } = await runWithDeadline(deadline, () =>
      guard.runDegradable(() => 'never'),
    )
    expect([value, reason]).toEqual(['at once', 'timeout'])
  })

  it('ends a lesser answer that takes too long', async () => {
    const hangs = reduced(() => new Promise<string>(() => {}), { timeoutMs: 20, clock })
    const guard = guardWith({ fallback: [hangs, staticValue('fixed')] })
    const asked = guard.run(broken)
    await clock.advance(20)
    expect(await asked).toBe('fixed')
  })

  it('hands a call over for later, with why', async () => {
    const jobs: unknown[] = []
    const later = enqueue(({ guard, reason, options }) => {
      jobs.push([guard, reason, options.user])
      return { ticket: jobs.length }
    })
    const guard = guardWith({ fallback: [later] }, 'mail')
    const answer = await guard.runDegradable(broken, { user: 'ann' })
    expect(answer).toMatchObject({ value: { ticket: 1 }, step: 'enqueue' })
    expect(jobs).toEqual([['mail', 'error', 'ann']])
  })

  it('makes a job of a call, in a queue of its own guard', async () => {
    let isBroken = true
    const answer = (document: number) =>
      isBroken ? broken() : Promise.resolve(`summary of ${document}`)
    const guard: Guard = guardWith(
      { fallback: [enqueue<number>({ queue: () => queue, on: ['error', 'circuit-open'] })] },
      'summaries',
    )
    const queue = spillway.queue<number, string>('later', { guard, keep: 0 })
    onTestFinished(() => clock.until(queue.close({ graceMs: 0 })))
    const asked = { job: 7, user: 'ann', priority: 'high', idempotencyKey: 'd-7' } as const
    const first = await guard.runDegradable<unknown>(() => answer(7), asked)
    const ticket = { queue: 'later', id: expect.any(String), fresh: true }
    expect(first).toMatchObject({ value: ticket, degraded: true, reason: 'error', step: 'enqueue' })
    expect(first.message).toContain('accepted, will be done later')
    const again = await guard.run<unknown>(() => answer(7), asked)
    expect(again).toEqual({ ...(first.value as object), fresh: false })
    const { id } = first.value as { id: string }
    expect(await queue.job(id)).toMatchObject({ data: 7, priority: 'high', tenant: 'ann' })
    isBroken = false
    queue.work(({ data }) => answer(data))
    await clock.advance(10)
    expect(await queue.job(id)).toMatchObject({ state: 'done', result: 'summary of 7' })
  })

  it('makes no job of a call that has none, nor for somebody who has used up a limit of theirs', async () => {
    const queue = { name: 'q', add: () => Promise.reject(new Error('nobody should')) }
    const guard = guardWith({
      userLimits: [{ per: 'user', limit: 1, windowMs: '1h' }],
      fallback: [enqueue({ queue }), staticValue('less')],
    })
    expect(await guard.run<unknown>(broken, { user: 'ann' })).toBe('less')
    expect(await guard.run<unknown>(broken, { user: 'ann', job: 1 })).toBe('less')
    expect(() => enqueue({ queue: 'summaries' } as never)).toThrow('enqueue.queue')
  })

  it('goes on to the next fallback where the queue is full', async () => {
    const guard: Guard = guardWith({
      fallback: [enqueue({ queue: () => full }), staticValue('less')],
    })
    const full = spillway.queue('full', { guard, maxSize: 1 })
    onTestFinished(() => clock.until(full.close({ graceMs: 0 })))
    expect(await guard.run<unknown>(broken, { job: 1 })).toMatchObject({ queue: 'full' })
    expect(await guard.run<unknown>(broken, { job: 2 })).toBe('less')
  })

  it('does not stand between tryRun or fetch and their downstream', async () => {
    const guard = guardWith({
      fallback: [staticValue('less')],
      fetch: { fetch: (() => broken()) as typeof fetch },
    })
    expect((await guard.tryRun(broken)).ok).toBe(false)
    await expect(guard.fetch('http://nowhere.test')).rejects.toThrow('connection reset')
  })
})

describe('events of fallbacks', () => {
  let stop = () => {}
  afterEach(() => stop())

  it('tell which stood in, and which could not', async () => {
    const events: SpillwayEvent[] = []
    stop = onEvent((event) => {
      if (event.type.startsWith('fallback')) events.push(event)
    })
    const guard = guardWith({ fallback: [reduced(broken), staticValue(1)] }, 'told')
    await guard.run(broken)
    expect(events).toMatchObject([
      { type: 'fallback.failed', name: 'told', step: 'reduced' },
      { type: 'fallback.used', name: 'told', step: 'static', reason: 'error' },
    ])
  })
})

describe('options of fallbacks', () => {
  it.each([
    [[() => 1], /guard\(g\)\.fallback\[0\]: must be a guard, .*did you mean reduced\(fn\)\?/],
    [[staticValue(1), { value: 2 }], /guard\(g\)\.fallback\[1\]: must be a guard/],
    ['none', /guard\(g\)\.fallback: must be an array/],
  ])('are checked with their path', (fallback, message) => {
    expect(() => guardWith({ fallback: fallback as never }, 'g')).toThrow(message)
  })

  it('complain of one that stands twice', () => {
    const twice = staticValue(1)
    expect(() => guardWith({ fallback: [twice, twice] }, 'g')).toThrow(
      'guard(g).fallback[1]: stands at guard(g).fallback[0] already',
    )
  })

  it('suggest what was meant', () => {
    expect(() => staleCache({ maxAge: 5 } as never)).toThrow("did you mean 'maxAgeMs'?")
    expect(() => staticValue(1, { on: ['timeouts' as never] })).toThrow("did you mean 'timeout'?")
    expect(() => otherGuard({} as never, () => 1)).toThrow('otherGuard.guard')
  })
})

describe('a stale cache', () => {
  const cached = (options = {}) => staleCache({ maxAgeMs: '1m', clock, ...options })

  it('gives the last good answer to the same question, with its age', async () => {
    const guard = guardWith({ fallback: [cached()] }, 'catalog')
    await guard.run(() => 'old', { cacheKey: 'a' })
    await guard.run(() => 'good', { cacheKey: 'a' })
    await clock.advance(12_000)
    expect(await guard.runDegradable(broken, { cacheKey: 'a' })).toMatchObject({
      value: 'good',
      step: 'stale-cache',
      message: 'catalog: failed; from the cache, 12 s old',
    })
    await expect(guard.run(broken, { cacheKey: 'b' })).rejects.toThrow()
    await expect(guard.run(broken)).rejects.toThrow()
  })

  it('gives nothing that is too old, and keeps it no longer', async () => {
    const cache = cached()
    const guard = guardWith({ fallback: [cache] })
    await guard.run(() => 'good', { cacheKey: 'a' })
    await clock.advance(60_001)
    await expect(guard.run(broken, { cacheKey: 'a' })).rejects.toThrow('connection reset')
    expect(cache.size).toBe(0)
  })

  it('keeps so many answers, and forgets those nobody got for longest', async () => {
    const cache = cached({ size: 2 })
    const guard = guardWith({ fallback: [cache] })
    for (const cacheKey of ['a', 'b', 'a', 'c']) await guard.run(() => cacheKey, { cacheKey })
    expect(cache.size).toBe(2)
    expect(await guard.run(broken, { cacheKey: 'a' })).toBe('a')
    await expect(guard.run(broken, { cacheKey: 'b' })).rejects.toThrow()
  })

  it('is not filled by a fallback, so an answer never gets younger', async () => {
    const guard = guardWith({ fallback: [cached(), staticValue('fixed')] })
    await guard.run(broken, { cacheKey: 'a' })
    expect((await guard.runDegradable(broken, { cacheKey: 'a' })).step).toBe('static')
  })

  it('keeps no stream, of which only one can have the body', async () => {
    const cache = cached()
    const guard = guardWith({ fallback: [cache] })
    const response = await guard.run(() => new Response('text'), { cacheKey: 'a' })
    await response.text()
    expect(cache.size).toBe(0)
  })

  it('copies for callers who change what they get', async () => {
    const guard = guardWith({ fallback: [cached({ copy: structuredClone })] })
    const mine = await guard.run(() => ({ items: [1] }), { cacheKey: 'a' })
    mine.items.push(2)
    const stale = await guard.run(broken as () => Promise<{ items: number[] }>, { cacheKey: 'a' })
    expect(stale.items).toEqual([1])
  })

  it('has keys of your own making', async () => {
    const guard = guardWith({ fallback: [cached({ key: ({ user }: { user?: string }) => user })] })
    await guard.run(() => "ann's", { user: 'ann' })
    expect(await guard.run(broken, { user: 'ann' })).toBe("ann's")
  })
})

it('a refusal of the guard is a SpillwayError still, where there is no fallback for it', async () => {
  const guard = guardWith({
    shed: { when: () => true },
    fallback: [staticValue(1, { on: ['error'] })],
  })
  await expect(guard.run(() => 1)).rejects.toBeInstanceOf(SpillwayError)
})
