import { describe, expect, it } from 'vitest'
import { SpillwayError } from './errors.js'
import { onEvent, type SpillwayEvent } from './events.js'
import { OptionsError } from './options/checks.js'
import {
  answerOf,
  type CallEnd,
  judge,
  judgeStatus,
  type Outcome,
  probeOutcome,
} from './outcome.js'

const outcomeOf = (error: unknown) => judge({ error }).outcome
const retryable = (error: unknown) => judge({ error }).retryable

function own(code: SpillwayError['code'], details = {}): SpillwayError {
  return new SpillwayError({ code, stage: 'call', scope: 'local', details, explain: () => code })
}

describe('outcome of a status', () => {
  it.each<[number, Outcome, 'retryable' | 'final']>([
    [200, 'success', 'final'],
    [204, 'success', 'final'],
    [304, 'success', 'final'],
    [400, 'ignored', 'final'],
    [401, 'ignored', 'final'],
    [404, 'ignored', 'final'],
    [408, 'failure', 'retryable'],
    [409, 'ignored', 'final'],
    [422, 'ignored', 'final'],
    [425, 'ignored', 'retryable'],
    [429, 'throttled', 'retryable'],
    [500, 'failure', 'retryable'],
    [501, 'failure', 'final'],
    [502, 'failure', 'retryable'],
    [503, 'failure', 'retryable'],
    [504, 'failure', 'retryable'],
    [529, 'failure', 'retryable'],
  ])('status %d is judged as %s and %s', (status, outcome, expected) => {
    const verdict = judgeStatus(status)
    expect(verdict.outcome).toBe(outcome)
    expect(verdict.retryable).toBe(expected === 'retryable')
  })

  it('judge finds the status on a response and in the usual fields of an error', () => {
    expect(judge({ value: new Response(null, { status: 503 }) }).outcome).toBe('failure')
    expect(outcomeOf({ status: 429 })).toBe('throttled')
    expect(outcomeOf({ statusCode: 502 })).toBe('failure')
    expect(outcomeOf({ response: { status: 404 } })).toBe('ignored')
  })

  it('judge returns the Retry-After of the downstream', () => {
    const headers = { 'Retry-After': '7' }
    expect(judge({ error: { status: 429, headers } }).retryAfterMs).toBe(7_000)
    expect(judge({ error: { response: { status: 503, headers } } }).retryAfterMs).toBe(7_000)
    const response = new Response(null, { status: 429, headers })
    expect(judge({ value: response }).retryAfterMs).toBe(7_000)
  })

  it('judge reads a Retry-After date against wallMs, and the system time by default', () => {
    const wallMs = Date.UTC(2026, 0, 1)
    const error = (atMs: number) => ({
      status: 429,
      headers: { 'retry-after': new Date(atMs).toUTCString() },
    })
    expect(judge({ error: error(wallMs + 30_000) }, { wallMs }).retryAfterMs).toBe(30_000)
    const { retryAfterMs = 0 } = judge({ error: error(Date.now() + 3_600_000) })
    expect(Math.abs(retryAfterMs - 3_600_000)).toBeLessThan(600_000)
  })

  it('an object with status, ok and headers.get is judged as a response, others as values', () => {
    const headers = { get: () => null }
    expect(judge({ value: { status: 503, ok: false, headers } }).outcome).toBe('failure')
    expect(judge({ value: { status: 503, headers } }).outcome).toBe('success')
    expect(judge({ value: { status: 503, ok: false, headers: {} } }).outcome).toBe('success')
    expect(judge({ value: { status: '503', ok: false, headers } }).outcome).toBe('success')
    expect(judge({ value: null }).outcome).toBe('success')
  })

  it('a number below 100 in a status field of an error is not a status', () => {
    expect(answerOf({ error: { status: 0, statusCode: 404 } })?.status).toBe(404)
    expect(answerOf({ error: { status: 100 } })?.status).toBe(100)
    expect(answerOf({ error: { status: 404.5 } })).toBeUndefined()
    expect(answerOf({ error: { status: '404' } })).toBeUndefined()
  })

  it('answerOf returns status and headers of a response and of an error, and nothing else', () => {
    const headers = { 'x-ratelimit-remaining': '1' }
    const value = new Response(null, { status: 404 })
    expect(answerOf({ value })).toBe(value)
    expect(answerOf({ value: 'text' })).toBeUndefined()
    expect(answerOf({ error: { status: 429, headers } })).toEqual({ status: 429, headers })
    expect(answerOf({ error: { response: { status: 429, headers } } })).toEqual({
      status: 429,
      headers,
    })
    expect(answerOf({ error: new Error('reset') })).toBeUndefined()
  })
})

describe('outcome of an error', () => {
  it('a network error is a retryable failure', () => {
    const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
    const fetchFailed = new TypeError('fetch failed', { cause: reset })
    for (const error of [reset, fetchFailed, new Error('boom'), 'a string']) {
      expect(judge({ error })).toEqual({ outcome: 'failure', retryable: true })
    }
  })

  it('a programming error of the caller is not retryable', () => {
    for (const error of [new TypeError('x is undefined'), new RangeError('bad'), SyntaxError()]) {
      expect(retryable(error)).toBe(false)
    }
  })

  it('judge distinguishes an invalid URL from a broken network, although fetch throws TypeError for both', async () => {
    const error = await fetch('not a url').catch((each) => each)
    expect(judge({ error }).retryable).toBe(false)
  })

  it('an OptionsError is ignored', () => {
    expect(outcomeOf(new OptionsError([]))).toBe('ignored')
  })

  it('an error with status 200 is a retryable failure', () => {
    expect(judge({ error: { status: 200 } })).toEqual({ outcome: 'failure', retryable: true })
  })

  it('an error that a bug caused is not retryable, and a circular chain of causes ends', () => {
    expect(retryable(new TypeError('outer', { cause: new RangeError('inner') }))).toBe(false)
    const circular = new TypeError('loop')
    circular.cause = circular
    expect(retryable(circular)).toBe(true)
  })

  it('an abort without an abort of the caller is ignored and not retryable', () => {
    const error = new DOMException('gone', 'AbortError')
    expect(judge({ error })).toEqual({ outcome: 'ignored', retryable: false })
    const notAborted = new AbortController().signal
    expect(judge({ error, signal: notAborted }).outcome).toBe('ignored')
  })

  it('a TimeoutError is a retryable failure although its status field says otherwise', () => {
    const error = Object.assign(new Error('late'), { name: 'TimeoutError', status: 404 })
    expect(judge({ error })).toEqual({ outcome: 'failure', retryable: true })
  })

  it('an error with status 400 is ignored and not retryable', () => {
    expect(judge({ error: { status: 400 } })).toEqual({ outcome: 'ignored', retryable: false })
  })

  it('retryAfterMs of an error is used from 0 on and ignored if it is not a number', () => {
    expect(judge({ error: { status: 503, retryAfterMs: 0 } }).retryAfterMs).toBe(0)
    expect(judge({ error: { status: 503, retryAfterMs: 250 } }).retryAfterMs).toBe(250)
    for (const retryAfterMs of [-1, Number.NaN, Infinity, '5']) {
      expect(judge({ error: { status: 503, retryAfterMs } })).not.toHaveProperty('retryAfterMs')
    }
  })

  it('an error or a value whose fields throw keeps the default outcome', () => {
    const trap = new Proxy(
      {},
      {
        get() {
          throw new Error('not readable')
        },
      },
    )
    expect(judge({ error: trap })).toEqual({ outcome: 'failure', retryable: true })
    expect(judge({ value: trap })).toEqual({ outcome: 'success', retryable: false })
    expect(answerOf({ error: trap })).toBeUndefined()
  })

  it('a timeout is a failure only if the downstream had received the call', () => {
    expect(outcomeOf(own('CALL_TIMEOUT'))).toBe('failure')
    expect(retryable(own('CALL_TIMEOUT'))).toBe(true)
    expect(outcomeOf(new DOMException('too slow', 'TimeoutError'))).toBe('failure')
    expect(outcomeOf(own('DEADLINE_EXCEEDED', { called: true }))).toBe('failure')
    expect(outcomeOf(own('DEADLINE_EXCEEDED'))).toBe('ignored')
  })

  it('a refusal by Spillway itself is ignored and not retryable', () => {
    const codes = ['SHED', 'USER_LIMITED', 'QUEUE_FULL', 'CIRCUIT_OPEN', 'SHUTTING_DOWN'] as const
    for (const code of codes) {
      expect(judge({ error: own(code) })).toEqual({ outcome: 'ignored', retryable: false })
    }
  })

  it('an abort by the caller is ignored, or slow if it came after slowMs', () => {
    const signal = AbortSignal.abort()
    const error = signal.reason
    expect(judge({ error, signal, durationMs: 50 }).outcome).toBe('ignored')
    expect(judge({ error, signal, durationMs: 50 }, { slowMs: 2_000 }).outcome).toBe('ignored')
    const late = { error, signal, durationMs: 2_000 }
    expect(judge(late, { slowMs: 2_000 })).toEqual({ outcome: 'slow', retryable: false })
    expect(judge({ error, signal }, { slowMs: 2_000 }).outcome).toBe('ignored')
  })

  it('the `retryable` property of an error overrides the default', () => {
    expect(retryable(Object.assign(new Error(), { retryable: false }))).toBe(false)
    expect(retryable(Object.assign(new TypeError(), { retryable: true }))).toBe(true)
    expect(retryable({ status: 409, retryable: true })).toBe(true)
  })
})

describe('outcome of a value', () => {
  it('a value is a success, or slow from slowMs on', () => {
    expect(judge({ value: 1, durationMs: 999 }, { slowMs: 1_000 }).outcome).toBe('success')
    const slow = { value: 1, durationMs: 1_000 }
    expect(judge(slow, { slowMs: 1_000 })).toEqual({ outcome: 'slow', retryable: false })
    expect(judge({ value: 1 }, { slowMs: 1_000 }).outcome).toBe('success')
  })
})

describe('classify', () => {
  it('classify can override the whole verdict, a part of it or nothing', () => {
    const error = { status: 404 }
    expect(judge({ error }, { classify: () => 'failure' })).toEqual({
      outcome: 'failure',
      retryable: true,
    })
    expect(judge({ error }, { classify: () => ({ retryable: true }) })).toEqual({
      outcome: 'ignored',
      retryable: true,
    })
    expect(judge({ error }, { classify: () => undefined }).outcome).toBe('ignored')
  })

  it('classify can return throttled with a wait, and success is then not retryable', () => {
    const error = { status: 404 }
    const throttled = { outcome: 'throttled', retryAfterMs: 0 } as const
    expect(judge({ error }, { classify: () => throttled })).toEqual({
      outcome: 'throttled',
      retryable: false,
      retryAfterMs: 0,
    })
    expect(judge({ error }, { classify: () => 'throttled' }).retryable).toBe(true)
    expect(judge({ error }, { classify: () => 'success' })).toEqual({
      outcome: 'success',
      retryable: false,
    })
  })

  it('a verdict of classify keeps the Retry-After of the downstream', () => {
    const error = { status: 429, headers: { 'retry-after': '7' } }
    expect(judge({ error }, { classify: () => 'failure' }).retryAfterMs).toBe(7_000)
  })

  it('a rejected promise returned by classify is not an unhandled rejection', async () => {
    const unhandled: unknown[] = []
    const listen = (reason: unknown) => unhandled.push(reason)
    process.on('unhandledRejection', listen)
    const classify = (async () => {
      throw new Error('async classify')
    }) as unknown as () => Outcome
    expect(judge({ error: { status: 404 } }, { classify }).outcome).toBe('ignored')
    await new Promise(setImmediate)
    process.off('unhandledRejection', listen)
    expect(unhandled).toEqual([])
  })

  it.each([
    'fail',
    7,
    true,
    Promise.resolve('failure'),
    Object.assign(Promise.resolve(), { outcome: 'failure' }),
    null,
    { retryAfterMs: Number.NaN },
    { retryAfterMs: -1 },
    { outcome: 'failure', retryAfterMs: Infinity },
  ])('the default verdict applies when classify returns the invalid value %j', (own) => {
    const classify = (() => own) as () => Outcome
    expect(judge({ error: { status: 404 } }, { classify })).toEqual({
      outcome: 'ignored',
      retryable: false,
    })
  })

  it('the default verdict applies when classify throws, and callback.failed is emitted', () => {
    const events: SpillwayEvent[] = []
    const stop = onEvent((event) => events.push(event))
    const classify = () => {
      throw new Error('bug')
    }
    expect(judge({ error: { status: 429 } }, { classify }).outcome).toBe('throttled')
    stop()
    expect(events).toMatchObject([{ type: 'callback.failed', callback: 'classify' }])
  })
})

describe('outcome of a probe', () => {
  const probe = (end: CallEnd, classify?: () => Outcome) =>
    probeOutcome(end, judge(end, classify && { classify }))

  it.each<[string, CallEnd, Outcome]>([
    ['the answer 404', { error: { status: 404 } }, 'success'],
    ['the answer 499', { value: new Response(null, { status: 499 }) }, 'success'],
    ['the answer 425', { error: { status: 425 } }, 'success'],
    ['the answer 500', { error: { status: 500 } }, 'failure'],
    ['the answer 429', { error: { status: 429 } }, 'throttled'],
    ['a value', { value: 1 }, 'success'],
    ['an abort without an answer', { error: new DOMException('gone', 'AbortError') }, 'ignored'],
    ['a refusal by Spillway', { error: own('SHED') }, 'ignored'],
    [
      'an answer 404 after the caller has left',
      { error: { status: 404 }, signal: AbortSignal.abort() },
      'ignored',
    ],
  ])('a probe that ends with %s counts as %s', (_, end, outcome) => {
    expect(probe(end)).toBe(outcome)
  })

  it.each([500, 408, 429])(
    'an ignored probe with status %d does not show that the downstream works',
    (status) => {
      expect(probeOutcome({ error: { status } }, { outcome: 'ignored', retryable: false })).toBe(
        'ignored',
      )
    },
  )

  it('a probe counts as ignored when classify says so, although the downstream answered', () => {
    expect(probe({ error: { status: 404 } }, () => 'ignored')).toBe('ignored')
  })

  it('a probe counts by its status when classify changes only whether it is retryable', () => {
    const end = { error: { status: 404 } }
    const verdict = judge(end, { classify: () => ({ retryable: true }) })
    expect(probeOutcome(end, verdict)).toBe('success')
  })
})
