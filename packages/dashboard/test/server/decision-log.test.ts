import { describe, expect, it } from 'vitest'
import { DecisionLog } from '../../../spillway/src/guard/decisions/decision-log.js'
import type { DecisionRecord } from '../../../spillway/src/guard/decisions/decision-record.js'
import { internalsOf } from '../../../spillway/src/guard/internals.js'
import {
  createSpillway,
  type GuardOptions,
  onEvent,
  type SpillwayEvent,
} from '../../../spillway/src/index.js'
import { noteFallback } from '../../../spillway/src/internal/index.js'
import { createVirtualClock } from '../../../spillway/src/testing/index.js'
import { decisionView } from '../../src/feed/decision-view.js'

const RECORD = { guard: 'openai', code: 'OK' } as unknown as Omit<DecisionRecord, 'id'>

describe('DecisionLog', () => {
  function followed(log: DecisionLog, aSecond: number, seconds: number): number {
    let count = 0
    for (let call = 0; call < aSecond * seconds; call++) {
      if (log.callArrived((call * 1_000) / aSecond)) count++
    }
    return count
  }

  it('decision log records every call of an idle pod and a spread sample of a busy one', () => {
    const log = new DecisionLog(createVirtualClock())
    log.watched = true
    expect(followed(log, 20, 5)).toBe(100)
    const busy = new DecisionLog(createVirtualClock())
    busy.watched = true
    const count = followed(busy, 5_000, 5)
    expect(count).toBeGreaterThan(150)
    expect(count).toBeLessThanOrEqual(200)
    expect(busy.seen).toBe(25_000)
  })

  it('decision log records fewer calls while no page is open', () => {
    const log = new DecisionLog(createVirtualClock())
    expect(followed(log, 5_000, 5)).toBeLessThanOrEqual(50)
  })

  it('decision log keeps the newest records by id', () => {
    const log = new DecisionLog(createVirtualClock())
    for (let each = 0; each < 2_000; each++) log.note(RECORD)
    const kept = log.since(1, 10_000)
    expect(kept.length).toBeLessThanOrEqual(500)
    expect(kept.at(-1)?.id).toBe(2_000)
    expect(log.since(1_999, 10_000).map(({ id }) => id)).toEqual([1_999, 2_000])
    expect(log.since(1, 3).map(({ id }) => id)).toEqual([1_998, 1_999, 2_000])
    expect(log.since(2_001, 10)).toEqual([])
  })

  it('a retried call appears once, with every attempt in its path', async () => {
    const clock = createVirtualClock()
    const spillway = createSpillway({ clock })
    const guard = spillway.guard('openai', {
      concurrency: { limit: 5 },
      retry: { attempts: 3, baseMs: 10, maxMs: 20, budget: 1 },
    })
    const log = new DecisionLog(clock)
    for (const each of internalsOf(spillway)?.guards() ?? []) each.keepDecisions(log)
    let attempts = 0
    const flaky = async () => {
      if (++attempts < 3) throw Object.assign(new Error('reset'), { code: 'ECONNRESET' })
      return 'fine'
    }
    await clock.until(guard.run(flaky, { user: 'ada' }))
    const [record, ...others] = log.since(1, 10)
    expect(others).toEqual([])
    expect(record).toMatchObject({ code: 'OK', attempts: 3, user: 'ada', traced: true })
    expect(
      record?.path.filter(({ stage }) => stage === 'call').map(({ attempt }) => attempt),
    ).toEqual([1, 2, 3])
    await clock.until(spillway.close())
  })

  it('a call that a fallback of the gateway answered is DEGRADED, not OK', async () => {
    const clock = createVirtualClock()
    const spillway = createSpillway({ clock })
    const guard = spillway.guard('openai', { concurrency: { limit: 5 } })
    const log = new DecisionLog(clock)
    for (const each of internalsOf(spillway)?.guards() ?? []) each.keepDecisions(log)
    const events: SpillwayEvent[] = []
    const stop = onEvent((event) => events.push(event))
    const call = { lane: 'gpt', user: 'ada', priority: 'high' } as const
    const used = { step: 'cached', reason: 'circuit-open', arrivedMs: 0, attempts: 2 } as const
    await clock.advance(30)
    noteFallback(guard, { ...used, call })
    stop()
    expect(log.since(1, 10).map((record) => decisionView(record, 'pod', 0))).toMatchObject([
      {
        code: 'DEGRADED',
        stage: 'fallback',
        lane: 'gpt',
        user: 'ada',
        priority: 'high',
        attempts: 2,
      },
    ])
    expect(decisionView(log.since(1, 1)[0] as DecisionRecord, 'pod', 0)).not.toHaveProperty(
      'remedy',
    )
    const counted = { step: 'cached', reason: 'circuit-open', count: 1 }
    expect(guard.snapshot().fallbacks).toEqual([counted])
    expect(events.filter(({ type }) => type === 'fallback.used')).toEqual([
      { type: 'fallback.used', name: 'openai', step: 'cached', reason: 'circuit-open' },
    ])
    // Counts outlive a change of the guard's options.
    const next = spillway.replaceGuard('openai', { concurrency: { limit: 6 } })
    expect(next.snapshot().fallbacks).toEqual([counted])
    await clock.until(spillway.close())
  })

  it('decision log records the kind of an error without its message, and aborts by callers', async () => {
    const clock = createVirtualClock()
    const spillway = createSpillway({ clock })
    const guard = spillway.guard('openai', { concurrency: { limit: 5 } })
    const log = new DecisionLog(clock)
    for (const each of internalsOf(spillway)?.guards() ?? []) each.keepDecisions(log)
    log.watched = true
    const leaving = new AbortController()
    const gone = guard.run(() => new Promise(() => {}), { signal: leaving.signal })
    leaving.abort(new Error('secret reason'))
    await clock.until(gone.catch(() => {}))
    const thrown = Object.assign(new TypeError('secret words'), {
      code: 'E_SECRET words',
      status: 502,
    })
    await clock.until(guard.run(() => Promise.reject(thrown)).catch(() => {}))
    const records = log.since(1, 10)
    expect(records.map(({ code, why }) => [code, why])).toEqual([
      ['ABORTED', 'the caller aborted the call'],
      ['FAILED', 'the call failed: TypeError 502'],
    ])
    await clock.until(spillway.close({ graceMs: 0 }))
  })

  it('an answered failure is FAILED and a 4xx is REJECTED, each with its HTTP status', async () => {
    const { clock, guard, log, spillway } = watchedGuard()
    const answer = (status: number) => new Response('', { status })
    for (const status of [503, 404, 200]) await clock.until(guard.run(() => answer(status)))
    const thrown = Object.assign(new Error('secret'), { status: 422 })
    await clock.until(guard.run(() => Promise.reject(thrown)).catch(() => {}))
    await clock.advance(1_000)
    await clock.until(guard.run(() => answer(429)))
    expect(log.since(1, 10).map(({ code, status }) => [code, status])).toEqual([
      ['FAILED', 503],
      ['REJECTED', 404],
      ['OK', 200],
      ['REJECTED', 422],
      ['REJECTED', 429],
    ])
    expect(log.since(1, 10)[0]?.why).toBe(
      'the downstream answered with 503, which counts as a failure',
    )
    await clock.until(spillway.close())
  })

  it('a value that classify judges a failure is FAILED, and a slow answer is OK', async () => {
    const { clock, guard, log, spillway } = watchedGuard({
      classify: (end) => {
        const value = 'value' in end ? end.value : undefined
        return value === 'bad' ? 'failure' : value === 'slow' ? 'slow' : undefined
      },
    })
    for (const value of ['bad', 'slow']) await clock.until(guard.run(() => value))
    expect(log.since(1, 10).map(({ code, status }) => [code, status])).toEqual([
      ['FAILED', undefined],
      ['OK', undefined],
    ])
    await clock.until(spillway.close())
  })

  it('a refusal of an open circuit names the cause', async () => {
    const { clock, guard, log, spillway } = watchedGuard({
      breaker: { consecutiveFailures: 3, openMs: '1m' },
    })
    const fail = () => Promise.reject(Object.assign(new Error('no'), { status: 500 }))
    for (let call = 0; call < 3; call++) await clock.until(guard.run(fail).catch(() => {}))
    await clock.until(guard.run(fail).catch(() => {}))
    const view = decisionView(log.since(1, 10).at(-1) as DecisionRecord, 'pod', 0)
    expect(view).toMatchObject({ code: 'CIRCUIT_OPEN', numbers: { cause: '3 failures in a row' } })
    expect(view.why).toContain('the circuit is open (3 failures in a row)')
    await clock.until(spillway.close())
  })

  it('a call that a vendor limit refuses shows the requested and the remaining units', async () => {
    const { clock, guard, log, spillway } = watchedGuard({
      limits: [{ unit: 'tokens', limit: 1_000, windowMs: '1m' }],
    })
    await clock.until(guard.run(() => 'fine', { cost: { tokens: 880 } }))
    await clock.until(guard.run(() => 'fine', { cost: { tokens: 900 } }).catch(() => {}))
    const view = decisionView(log.since(1, 10).at(-1) as DecisionRecord, 'pod', 5_000)
    expect(view.code).toBe('VENDOR_LIMITED')
    expect(view.requested).toMatchObject({
      unit: 'tokens',
      requested: 900,
      left: 120,
      limit: 1_000,
    })
    expect(view.requested?.untilAt).toBeGreaterThan(view.at)
    await clock.until(spillway.close())
  })

  it('a call that replaces another names it, its user and its request, however busy the pod is', async () => {
    const clock = createVirtualClock()
    const spillway = createSpillway({ clock })
    const backup = spillway.guard('backup', { concurrency: { limit: 5 } })
    const guard = spillway.guard('openai', { concurrency: { limit: 5 }, fallback: [backup] })
    const log = new DecisionLog(clock)
    for (const each of internalsOf(spillway)?.guards() ?? []) each.keepDecisions(log)
    const down = () => Promise.reject(Object.assign(new Error('no'), { status: 503 }))
    let calls = 0
    const fn = () => (calls++ % 2 === 0 ? down() : Promise.resolve('fine'))
    const options = { user: 'ada', lane: 'gpt', requestId: 'req-1' }
    await clock.until(guard.run(fn, options))
    // The budget of this moment is used up by now, and the second call is recorded nevertheless.
    expect(log.since(1, 10).map((record) => decisionView(record, 'pod', 0))).toMatchObject([
      { guard: 'openai', code: 'FAILED', status: 503, user: 'ada', requestId: 'req-1' },
      {
        guard: 'backup',
        code: 'OK',
        user: 'ada',
        requestId: 'req-1',
        replaces: { guard: 'openai', lane: 'gpt', code: 'FAILED', status: 503 },
      },
    ])
    expect(log.ofRequest('req-1')).toHaveLength(2)
    expect(log.ofRequest('req-2')).toEqual([])
    await clock.until(spillway.close())
  })

  it('decision log finds requests of kept records only', () => {
    const log = new DecisionLog(createVirtualClock())
    for (let each = 0; each < 1_000; each++) log.note({ ...RECORD, requestId: `r${each}` })
    expect(log.ofRequest('r0')).toEqual([])
    expect(log.ofRequest('r999')).toMatchObject([{ id: 1_000 }])
  })

  it('a request id that may be a key is not shown', () => {
    const shownId = (requestId: string) =>
      decisionView(
        { ...RECORD, id: 1, requestId, details: {}, path: [], why: '', lane: '' } as never,
        'pod',
        0,
      ).requestId
    expect(shownId('Sk3tYgG5dQ-1f')).toBe('Sk3tYgG5dQ-1f')
    expect(shownId('sk-planted-0123456789')).toBeUndefined()
    expect(shownId('two words')).toBeUndefined()
    expect(shownId('x'.repeat(129))).toBeUndefined()
  })
})

function watchedGuard(options: GuardOptions = {}) {
  const clock = createVirtualClock()
  const spillway = createSpillway({ clock })
  const guard = spillway.guard('openai', { concurrency: { limit: 5 }, ...options })
  const log = new DecisionLog(clock)
  log.watched = true
  for (const each of internalsOf(spillway)?.guards() ?? []) each.keepDecisions(log)
  return { clock, spillway, guard, log }
}
