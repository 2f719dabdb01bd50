import { describe, expect, it } from 'vitest'
import { SpillwayError } from './errors.js'
import { noteRefusal, refusalOf, refusalToAnswer } from './refusal-of.js'

const refusal = new SpillwayError({
  code: 'CIRCUIT_OPEN',
  stage: 'breaker',
  scope: 'shared',
  explain: () => 'the circuit is open',
})

function wrapped(error: unknown, times: number): unknown {
  let outer = error
  for (let each = 0; each < times; each++) outer = new Error('wrapped', { cause: outer })
  return outer
}

describe('refusalOf', () => {
  it.each([0, 1, 2, 10])('refusalOf finds a refusal behind %i errors', (times) => {
    expect(refusalOf(wrapped(refusal, times))).toBe(refusal)
  })

  it('refusalOf finds a refusal among the errors of an AggregateError', () => {
    const all = new AggregateError([new Error('a bug'), wrapped(refusal, 1)], 'all failed')
    expect(refusalOf(new Error('outer', { cause: all }))).toBe(refusal)
  })

  it('refusalOf ends its search in a chain of causes with a cycle', () => {
    const one = new Error('one')
    const two = new Error('two', { cause: one })
    one.cause = two
    expect(refusalOf(one)).toBeUndefined()
    const both = new AggregateError([one, refusal])
    one.cause = both
    expect(refusalOf(one)).toBe(refusal)
  })

  it('refusalOf looks at a bounded number of errors', () => {
    let read = 0
    const endless = (): object => ({
      get cause() {
        read++
        return endless()
      },
    })
    expect(refusalOf(endless())).toBeUndefined()
    expect(read).toBeLessThan(100)
    read = 0
    const many = new AggregateError(Array.from({ length: 100_000 }, endless))
    expect(refusalOf(many)).toBeUndefined()
    expect(read).toBeLessThan(100)
  })

  it('refusalOf ignores getters that throw and values that are no errors', () => {
    const hostile = {
      get cause() {
        throw new Error('hostile')
      },
      get errors() {
        throw new Error('hostile')
      },
    }
    for (const value of [hostile, undefined, null, 'text', 1, {}]) {
      expect(refusalOf(value)).toBeUndefined()
    }
  })

  it('refusalOf finds the refusal whose answer an SDK turned into its own error', () => {
    const headers = new Headers()
    noteRefusal(headers, refusal)
    const sdkError = Object.assign(new Error('503'), { status: 503, headers })
    expect(refusalOf(new Error('outer', { cause: sdkError }))).toBe(refusal)
    expect(refusalToAnswer(sdkError)).toBe(refusal)
    const other = Object.assign(new Error('503'), { status: 503, headers: new Headers() })
    expect(refusalOf(other)).toBeUndefined()
  })
})

describe('refusalToAnswer', () => {
  it.each([400, 404, 502])(
    'an error around a refusal keeps the status %i that the application gave it',
    (status) => {
      const error = new Error('mine', { cause: refusal })
      expect(refusalToAnswer(Object.assign(error, { status }))).toBeUndefined()
      expect(refusalToAnswer(Object.assign(error, { statusCode: status }))).toBeUndefined()
    },
  )

  it.each([undefined, null, 0, 200, 500, 503, 'ECONNRESET'])(
    'an error around a refusal with the status %s is answered as the refusal',
    (status) => {
      const error = Object.assign(new Error('theirs', { cause: refusal }), { status })
      expect(refusalToAnswer(error)).toBe(refusal)
    },
  )
})
