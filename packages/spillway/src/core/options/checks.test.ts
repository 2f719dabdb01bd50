import { describe, expect, it } from 'vitest'
import {
  arrayOf,
  duration,
  either,
  func,
  having,
  integer,
  number,
  OptionsError,
  object,
  oneOf,
  optional,
  text,
  validate,
} from './checks.js'

const read = object({
  limit: integer({ min: 1 }),
  waitMs: optional(duration({ min: 0, max: 60_000 }), 5_000),
  ratio: optional(number({ min: 0, max: 1 })),
  algorithm: optional(oneOf('token-bucket', 'sliding-window')),
  queue: optional(object({ size: integer({ min: 0 }) })),
  steps: optional(arrayOf(object({ errorRate: number({ min: 0, max: 1 }) }))),
  onEvent: optional(func<() => void>()),
  name: optional(text()),
  clock: optional(having<{ now(): number }>('a clock', 'now')),
  jitter: optional(either(number({ min: 0, max: 1 }), oneOf('none', 'full'))),
})

function problemsWith(options: unknown): string {
  try {
    validate('bulkhead', options, read)
  } catch (error) {
    expect(error).toBeInstanceOf(OptionsError)
    expect(error).toBeInstanceOf(TypeError)
    expect((error as OptionsError).code).toBe('INVALID_OPTIONS')
    return (error as Error).message
  }
  return 'none'
}

describe('validate()', () => {
  it('validated options are complete and in milliseconds, and the input is unchanged', () => {
    const input = Object.freeze({ limit: 3, waitMs: '2s' })
    expect(validate('bulkhead', input, read)).toMatchObject({ limit: 3, waitMs: 2_000 })
    expect(validate('bulkhead', { limit: 3 }, read).waitMs).toBe(5_000)
    expect(validate('bulkhead', { limit: 3, waitMs: undefined }, read).waitMs).toBe(5_000)
  })

  it.each([
    [{ limit: 'ten' }, 'bulkhead.limit: must be a positive integer, got "ten"'],
    [{ limit: 0 }, 'bulkhead.limit: must be a positive integer, got 0'],
    [{ limit: 1.5 }, 'bulkhead.limit: must be a positive integer, got 1.5'],
    [{}, 'bulkhead.limit: must be a positive integer, got nothing'],
    [{ limit: null }, 'bulkhead.limit: must be a positive integer, got null'],
    [{ limit: 1, ratio: 2 }, 'bulkhead.ratio: must be a number from 0 to 1, got 2'],
    [{ limit: 1, ratio: Number.NaN }, 'bulkhead.ratio: must be a number from 0 to 1, got NaN'],
    [
      { limit: 1, waitMs: '5 parsecs' },
      'bulkhead.waitMs: must be a duration from 0 to 60000 ms, such as 250 or \'5s\', got "5 parsecs"',
    ],
    [
      { limit: 1, queue: { size: -1 } },
      'bulkhead.queue.size: must be an integer of at least 0, got -1',
    ],
    [{ limit: 1, queue: 5 }, 'bulkhead.queue: must be an object, got 5'],
    [
      { limit: 1, steps: [{ errorRate: 0 }, { errorRate: 7 }] },
      'bulkhead.steps[1].errorRate: must be a number from 0 to 1, got 7',
    ],
    [{ limit: 1, steps: {} }, 'bulkhead.steps: must be an array, got an object'],
    [{ limit: 1, onEvent: 'log' }, 'bulkhead.onEvent: must be a function, got "log"'],
    [{ limit: 1, name: '' }, 'bulkhead.name: must be a non-empty string, got ""'],
    [
      { limit: 1, clock: Date },
      'bulkhead.clock: must be a clock with the methods now, got a function',
    ],
    [
      { limit: 1, algorithm: 'token-buckets' },
      "bulkhead.algorithm: must be one of 'token-bucket', 'sliding-window', got \"token-buckets\"; did you mean 'token-bucket'?",
    ],
    [
      { limit: 1, jitter: 'ful' },
      "bulkhead.jitter: must be a number from 0 to 1, or one of 'none', 'full', got \"ful\"; did you mean 'full'?",
    ],
    [{ limti: 1, limit: 1 }, "bulkhead.limti: unknown option; did you mean 'limit'?"],
    [{ limit: 1, que: { size: 1 } }, "bulkhead.que: unknown option; did you mean 'queue'?"],
    [[], 'bulkhead: must be an object, got an array'],
    [undefined, 'bulkhead: must be an object, got nothing'],
  ])('options %j are rejected with path, expected value and actual value', (options, message) => {
    expect(problemsWith(options)).toBe(message)
  })

  it('an unknown option without a close match lists the known options', () => {
    expect(problemsWith({ limit: 1, colour: 'red' })).toMatch(
      /^bulkhead\.colour: unknown option; known: limit, /,
    )
  })

  it('validate reports all mistakes at once', () => {
    expect(problemsWith({ limt: 5, ratio: 3 }).split('\n')).toHaveLength(3)
  })

  it('option names such as __proto__ and toString are reported as unknown', () => {
    expect(problemsWith(JSON.parse('{"limit":1,"__proto__":{"a":1}}'))).toContain('__proto__')
    expect(problemsWith({ limit: 1, toString: 1 })).toContain('toString')
  })
})
