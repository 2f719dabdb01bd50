import { describe, expect, it } from 'vitest'
import { SpillwayError } from './errors.js'
import { onEvent, type SpillwayEvent } from './events.js'
import { OptionsError } from './options/checks.js'
import { judge, judgeStatus, type Outcome } from './outcome.js'

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

  it('a timeout is a failure only if the downstream had received the call', () => {
    expect(outcomeOf(own('CALL_TIMEOUT'))).toBe('failure')
    expect(retryable(own('CALL_TIMEOUT'))).toBe(true)
    expect(outcomeOf(new DOMException('too slow', 'TimeoutError'))).toBe('failure')
    expect(outcomeOf(own('DEADLINE_EXCEEDED', { called: true }))).toBe('failure')
    expect(outcomeOf(own('DEADLINE_EXCEEDED'))).toBe('ignored')
  })

  it('a refusal by Spillway itself is ignored and not retryable', () => {
    const codes = ['SHED', 'USER_LIMITED', 'QUEUE_FULL', 'CIRCUIT_OPEN', 'CLOSED'] as const
    for (const code of codes) {
      expect(judge({ error: own(code) })).toEqual({ outcome: 'ignored', retryable: false })
    }
  })

  it('an abort by the caller is ignored, or slow if it came after slowMs', () => {
    const signal = AbortSignal.abort()
    const error = signal.reason
    expect(judge({ error, signal, durationMs: 50 }).outcome).toBe('ignored')
    expect(judge({ error, signal, durationMs: 50 }, { slowMs: 2_000 }).outcome).toBe('ignored')
    expect(judge({ error, signal, durationMs: 3_000 }, { slowMs: 2_000 }).outcome).toBe('slow')
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
    expect(judge({ value: 1, durationMs: 1_000 }, { slowMs: 1_000 }).outcome).toBe('slow')
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

  it.each(['fail', 7, true, Promise.resolve('failure'), null, { retryAfterMs: Number.NaN }])(
    'the default verdict applies when classify returns the invalid value %j',
    (own) => {
      const classify = (() => own) as () => Outcome
      expect(judge({ error: { status: 404 } }, { classify })).toEqual({
        outcome: 'ignored',
        retryable: false,
      })
    },
  )

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
