import { describe, expect, it } from 'vitest'
import { SpillwayError } from './errors.js'
import { onEvent, type SpillwayEvent } from './events.js'
import { OptionsError } from './options.js'
import { judge, judgeStatus, type Outcome } from './outcome.js'

const outcomeOf = (error: unknown) => judge({ error }).outcome
const retryable = (error: unknown) => judge({ error }).retryable

function own(code: SpillwayError['code'], details = {}): SpillwayError {
  return new SpillwayError({ code, stage: 'call', scope: 'local', details, explain: () => code })
}

describe('the outcome of a status', () => {
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
  ])('%d is %s, %s', (status, outcome, expected) => {
    const verdict = judgeStatus(status)
    expect(verdict.outcome).toBe(outcome)
    expect(verdict.retryable).toBe(expected === 'retryable')
  })

  it('is found on a response and wherever an error keeps it', () => {
    expect(judge({ value: new Response(null, { status: 503 }) }).outcome).toBe('failure')
    expect(outcomeOf({ status: 429 })).toBe('throttled')
    expect(outcomeOf({ statusCode: 502 })).toBe('failure')
    expect(outcomeOf({ response: { status: 404 } })).toBe('ignored')
  })

  it('comes with the time the downstream asks for', () => {
    const headers = { 'Retry-After': '7' }
    expect(judge({ error: { status: 429, headers } }).retryAfterMs).toBe(7_000)
    expect(judge({ error: { response: { status: 503, headers } } }).retryAfterMs).toBe(7_000)
    const response = new Response(null, { status: 429, headers })
    expect(judge({ value: response }).retryAfterMs).toBe(7_000)
  })
})

describe('the outcome of an error', () => {
  it('is a failure when the network breaks', () => {
    const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
    const fetchFailed = new TypeError('fetch failed', { cause: reset })
    for (const error of [reset, fetchFailed, new Error('boom'), 'a string']) {
      expect(judge({ error })).toEqual({ outcome: 'failure', retryable: true })
    }
  })

  it('is not worth a repetition when it is a bug in the caller', () => {
    for (const error of [new TypeError('x is undefined'), new RangeError('bad'), SyntaxError()]) {
      expect(retryable(error)).toBe(false)
    }
  })

  it('knows a wrong address from a broken network, which fetch calls by the same name', async () => {
    const error = await fetch('not a url').catch((each) => each)
    expect(judge({ error }).retryable).toBe(false)
  })

  it('is ignored when it is about wrong options', () => {
    expect(outcomeOf(new OptionsError([]))).toBe('ignored')
  })

  it('is a failure although its status is good: the answer was not what it should be', () => {
    expect(judge({ error: { status: 200 } })).toEqual({ outcome: 'failure', retryable: true })
  })

  it('is a failure when time ran out while the downstream had the call, and nothing before', () => {
    expect(outcomeOf(own('CALL_TIMEOUT'))).toBe('failure')
    expect(retryable(own('CALL_TIMEOUT'))).toBe(true)
    expect(outcomeOf(new DOMException('too slow', 'TimeoutError'))).toBe('failure')
    expect(outcomeOf(own('DEADLINE_EXCEEDED', { called: true }))).toBe('failure')
    expect(outcomeOf(own('DEADLINE_EXCEEDED'))).toBe('ignored')
  })

  it('is ignored, and not repeated, when Spillway itself refused', () => {
    const codes = ['SHED', 'USER_LIMITED', 'QUEUE_FULL', 'CIRCUIT_OPEN', 'CLOSED'] as const
    for (const code of codes) {
      expect(judge({ error: own(code) })).toEqual({ outcome: 'ignored', retryable: false })
    }
  })

  it('is ignored when the caller hung up, unless it had waited past slowMs', () => {
    const signal = AbortSignal.abort()
    const error = signal.reason
    expect(judge({ error, signal, durationMs: 50 }).outcome).toBe('ignored')
    expect(judge({ error, signal, durationMs: 50 }, { slowMs: 2_000 }).outcome).toBe('ignored')
    expect(judge({ error, signal, durationMs: 3_000 }, { slowMs: 2_000 }).outcome).toBe('slow')
  })

  it('can be marked retryable, or not, by the error itself', () => {
    expect(retryable(Object.assign(new Error(), { retryable: false }))).toBe(false)
    expect(retryable(Object.assign(new TypeError(), { retryable: true }))).toBe(true)
    expect(retryable({ status: 409, retryable: true })).toBe(true)
  })
})

describe('the outcome of a value', () => {
  it('is success, or slow from slowMs on', () => {
    expect(judge({ value: 1, durationMs: 999 }, { slowMs: 1_000 }).outcome).toBe('success')
    expect(judge({ value: 1, durationMs: 1_000 }, { slowMs: 1_000 }).outcome).toBe('slow')
  })
})

describe('classify', () => {
  it('overrides all of the verdict, part of it, or nothing', () => {
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
    'is replaced by the default when it returns %j, which is no verdict',
    (own) => {
      const classify = (() => own) as () => Outcome
      expect(judge({ error: { status: 404 } }, { classify })).toEqual({
        outcome: 'ignored',
        retryable: false,
      })
    },
  )

  it('is replaced by the default when it throws, and the stream says so', () => {
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
