import { expect, it } from 'vitest'
import { keyAnswerOf, rejectsKey } from './key-answer.js'

type Failure = NonNullable<Parameters<typeof keyAnswerOf>[1]>
const failureOf = (kind: Failure['kind'], retryAfterMs?: number) =>
  ({ kind, retryAfterMs }) as Failure

it.each([
  ['accepted', 200, undefined],
  ['accepted', 400, failureOf('bad-request')],
  ['accepted', 429, failureOf('rate-limited')],
  ['unknown', 403, failureOf('bad-request')],
  ['unknown', 500, failureOf('server')],
  ['unknown', 529, failureOf('overloaded')],
  ['unknown', 418, undefined],
  ['invalid-key', 401, failureOf('invalid-key')],
  ['quota-exhausted', 429, failureOf('quota-exhausted')],
])(
  'the vendor treats a key as %s if it answers with status %i and the failure %j',
  (kind, status, failure) => {
    const answer = keyAnswerOf(status, failure)
    expect(answer.kind).toBe(kind)
    expect(rejectsKey(answer)).toBe(kind === 'invalid-key' || kind === 'quota-exhausted')
  },
)

it('a key with an exhausted quota is reset at the time in the answer', () => {
  const answer = keyAnswerOf(429, failureOf('quota-exhausted', 60_000))
  expect(answer).toEqual({ kind: 'quota-exhausted', resetMs: 60_000 })
})
