import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { SpillwayError } from '../core/errors.js'
import { onEvent, type SpillwayEvent } from '../core/events.js'
import { createDeadline, runWithDeadline } from '../core/time/deadline.js'
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

describe('guard with fallbacks', () => {
  it('guard returns the value of a successful call and marks it as not degraded', async () => {
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

  it('guard returns the first fallback value with reason, step and message', async () => {
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

  it('guard uses each fallback once per call, however many attempts the call made', async () => {
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

  it('guard calls another guard once, even if two fallback chains lead to it', async () => {
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

  it('guard throws the error of the call itself when no fallback has a value', async () => {
    const guard = guardWith({ fallback: [reduced(() => undefined), reduced(broken)] })
    const error = new Error('the first one')
    await expect(guard.run(() => Promise.reject(error))).rejects.toBe(error)
  })

  it('a fallback guard runs the call under its own protection', async () => {
    const backup = guardWith({ concurrency: { limit: 1 } })
    const guard = guardWith({ fallback: [otherGuard(backup, () => 'from the other')] })
    const before = backup.snapshot().attempts
    const answer = await guard.runDegradable(broken)
    expect(answer).toMatchObject({ value: 'from the other', step: backup.name, reason: 'error' })
    expect(backup.snapshot().attempts).toBe(before + 1)
  })

  it('the context of a function names the guard that runs it', async () => {
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
  it.each(reasons)('runDegradable() reports %s as the reason', async (reason, options, fn) => {
    const guard = guardWith({ ...options, fallback: [staticValue('less')] })
    // The first call opens the circuit or uses up the limit.
    const first = guard.run(fn)
    await clock.advance(10)
    await first
    const second = guard.runDegradable(fn)
    await clock.advance(10)
    expect((await second).reason).toBe(reason)
  })

  it('guard uses a fallback only for the reasons in its `on` option', async () => {
    const guard = guardWith({
      fallback: [staticValue('a', { on: ['timeout'] }), staticValue('b', { on: ['error'] })],
    })
    expect(await guard.run(broken)).toBe('b')
  })

  it('guard makes no other call for a user who has used up a limit', async () => {
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

  it('guard uses no fallback for client errors, invalid options or aborted calls', async () => {
    const guard = guardWith({ fallback: [staticValue('less')] })
    const notFound = Object.assign(new Error('no such product'), { status: 404 })
    await expect(guard.run(() => Promise.reject(notFound))).rejects.toBe(notFound)
    await expect(guard.run(() => 1, { timeoutMs: 'soon' as never })).rejects.toThrow('timeoutMs')
    const left = AbortSignal.abort(new Error('gone'))
    await expect(guard.run(() => 1, { signal: left })).rejects.toThrow('gone')
  })

  it('guard uses no further fallback once the caller has aborted', async () => {
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

  it('a fallback gets only the remaining time of the call', async () => {
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

  it('an in-memory fallback answers even after the deadline has passed', async () => {
    const guard = guardWith({ fallback: [reduced(() => 'slow'), staticValue('at once')] })
    const deadline = createDeadline(0, clock)
    const { value, reason } = await runWithDeadline(deadline, () =>
      guard.runDegradable(() => 'never'),
    )
    expect([value, reason]).toEqual(['at once', 'timeout'])
  })

  it('guard ends a reduced() fallback after its timeoutMs', async () => {
    const hangs = reduced(() => new Promise<string>(() => {}), { timeoutMs: 20, clock })
    const guard = guardWith({ fallback: [hangs, staticValue('fixed')] })
    const asked = guard.run(broken)
    await clock.advance(20)
    expect(await asked).toBe('fixed')
  })

  it('enqueue() receives the guard, the reason and the options of the call', async () => {
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

  it('enqueue() adds the call as a job to a job queue of the same guard', async () => {
    let isBroken = true
    const answer = (document: number) =>
      isBroken ? broken() : Promise.resolve(`summary of ${document}`)
    const guard: Guard = guardWith(
      { fallback: [enqueue<number>({ queue: () => queue, on: ['error', 'circuit-open'] })] },
      'summaries',
    )
    const queue = spillway.jobQueue<number, string>('later', { guard, keep: 0 })
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

  it('enqueue() skips calls without a job and users who have used up a limit', async () => {
    const queue = { name: 'q', add: () => Promise.reject(new Error('must not be added')) }
    const guard = guardWith({
      userLimits: [{ per: 'user', limit: 1, windowMs: '1h' }],
      fallback: [enqueue({ queue }), staticValue('less')],
    })
    expect(await guard.run<unknown>(broken, { user: 'ann' })).toBe('less')
    expect(await guard.run<unknown>(broken, { user: 'ann', job: 1 })).toBe('less')
    expect(() => enqueue({ queue: 'summaries' } as never)).toThrow('enqueue.queue')
  })

  it('guard uses the next fallback when the job queue is full', async () => {
    const guard: Guard = guardWith({
      fallback: [enqueue({ queue: () => full }), staticValue('less')],
    })
    const full = spillway.jobQueue('full', { guard, maxSize: 1 })
    onTestFinished(() => clock.until(full.close({ graceMs: 0 })))
    expect(await guard.run<unknown>(broken, { job: 1 })).toMatchObject({ queue: 'full' })
    expect(await guard.run<unknown>(broken, { job: 2 })).toBe('less')
  })

  it('tryRun() and fetch() do not use fallbacks', async () => {
    const guard = guardWith({
      fallback: [staticValue('less')],
      fetch: { fetch: (() => broken()) as typeof fetch },
    })
    expect((await guard.tryRun(broken)).ok).toBe(false)
    await expect(guard.fetch('http://nowhere.test')).rejects.toThrow('connection reset')
  })
})

describe('fallback events', () => {
  let stop = () => {}
  afterEach(() => stop())

  it('guard emits events for the fallback that was used and for those that failed', async () => {
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

describe('fallback options', () => {
  it.each([
    [[() => 1], /guard\(g\)\.fallback\[0\]: must be a guard, .*did you mean reduced\(fn\)\?/],
    [[staticValue(1), { value: 2 }], /guard\(g\)\.fallback\[1\]: must be a guard/],
    ['none', /guard\(g\)\.fallback: must be an array/],
  ])('an invalid fallback is reported with its path', (fallback, message) => {
    expect(() => guardWith({ fallback: fallback as never }, 'g')).toThrow(message)
  })

  it('a fallback listed twice is rejected', () => {
    const twice = staticValue(1)
    expect(() => guardWith({ fallback: [twice, twice] }, 'g')).toThrow(
      'guard(g).fallback[1]: is listed twice, see guard(g).fallback[0]',
    )
  })

  it('fallback options with a typo are rejected with a suggestion', () => {
    expect(() => staleCache({ maxAge: 5 } as never)).toThrow("did you mean 'maxAgeMs'?")
    expect(() => staticValue(1, { on: ['timeouts' as never] })).toThrow("did you mean 'timeout'?")
    expect(() => otherGuard({} as never, () => 1)).toThrow('otherGuard.guard')
  })
})

describe('staleCache()', () => {
  const cached = (options = {}) => staleCache({ maxAgeMs: '1m', clock, ...options })

  it('stale cache returns the last good answer for the same key with its age', async () => {
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

  it('stale cache drops answers older than maxAgeMs', async () => {
    const cache = cached()
    const guard = guardWith({ fallback: [cache] })
    await guard.run(() => 'good', { cacheKey: 'a' })
    await clock.advance(60_001)
    await expect(guard.run(broken, { cacheKey: 'a' })).rejects.toThrow('connection reset')
    expect(cache.size).toBe(0)
  })

  it('stale cache holds `size` answers and drops the least recently used', async () => {
    const cache = cached({ size: 2 })
    const guard = guardWith({ fallback: [cache] })
    for (const cacheKey of ['a', 'b', 'a', 'c']) await guard.run(() => cacheKey, { cacheKey })
    expect(cache.size).toBe(2)
    expect(await guard.run(broken, { cacheKey: 'a' })).toBe('a')
    await expect(guard.run(broken, { cacheKey: 'b' })).rejects.toThrow()
  })

  it('stale cache holds at most maxBytes and no answer that is larger', async () => {
    const bytesOf = (value: unknown) => String(value).length
    const cache = cached({ maxBytes: 10, bytesOf })
    const guard = guardWith({ fallback: [cache] })
    for (const value of ['four', 'six by', 'five 5', 'more than ten'])
      await guard.run(() => value, { cacheKey: value })
    expect(cache.size).toBe(1)
    expect(await guard.run(broken, { cacheKey: 'five 5' })).toBe('five 5')
    await guard.run(() => 'x', { cacheKey: 'five 5' })
    await guard.run(() => 'nine char', { cacheKey: 'nine' })
    expect(cache.size).toBe(2)
    expect(() => staleCache({ maxAgeMs: 1, maxBytes: 5 })).toThrow('maxBytes: needs bytesOf')
  })

  it('a fallback value is not cached, so a stale answer never becomes fresh again', async () => {
    const guard = guardWith({ fallback: [cached(), staticValue('fixed')] })
    await guard.run(broken, { cacheKey: 'a' })
    expect((await guard.runDegradable(broken, { cacheKey: 'a' })).step).toBe('static')
  })

  it('stale cache stores no Response, because its body can be read only once', async () => {
    const cache = cached()
    const guard = guardWith({ fallback: [cache] })
    const response = await guard.run(() => new Response('text'), { cacheKey: 'a' })
    await response.text()
    expect(cache.size).toBe(0)
  })

  it('stale cache returns copies when `copy` is set', async () => {
    const guard = guardWith({ fallback: [cached({ copy: structuredClone })] })
    const mine = await guard.run(() => ({ items: [1] }), { cacheKey: 'a' })
    mine.items.push(2)
    const findStale = () =>
      guard.run(broken as () => Promise<{ items: number[] }>, { cacheKey: 'a' })
    const stale = await findStale()
    expect(stale.items).toEqual([1])
    stale.items.push(3)
    expect((await findStale()).items).toEqual([1])
  })

  it('stale cache uses the `key` option to compute its keys', async () => {
    const guard = guardWith({ fallback: [cached({ key: ({ user }: { user?: string }) => user })] })
    await guard.run(() => "ann's", { user: 'ann' })
    expect(await guard.run(broken, { user: 'ann' })).toBe("ann's")
  })
})

it('a refusal without a matching fallback is thrown as a SpillwayError', async () => {
  const guard = guardWith({
    shed: { when: () => true },
    fallback: [staticValue(1, { on: ['error'] })],
  })
  await expect(guard.run(() => 1)).rejects.toBeInstanceOf(SpillwayError)
})
