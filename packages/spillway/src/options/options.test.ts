import { describe, expect, it } from 'vitest'
import { type OptionProblem, object, readGuardOptions, text } from './index.js'

function problemsWith(value: unknown): string[] {
  const problems: OptionProblem[] = []
  const read = object({ name: text(), guard: readGuardOptions })
  read(value, 'vendors[0]', problems)
  return problems.map(({ path, message }) => `${path}: ${message}`)
}

describe('readGuardOptions', () => {
  it('valid guard options are returned unchanged', () => {
    const guard = { queue: { size: 3, timeoutMs: '5s' }, breaker: {} }
    const problems: OptionProblem[] = []
    expect(readGuardOptions(guard, 'guard', problems)).toBe(guard)
    expect(problems).toEqual([])
  })

  it('problems of nested guard options are reported with their full path', () => {
    const guard = {
      queu: {},
      limits: [
        { limit: 1, windowMs: 'fast' },
        { limit: 1, windowMs: 1, burst: 2 },
      ],
      breaker: { slowRate: 0.5 },
      timeout: { firstByteMs: 5, adaptive: {} },
    }
    expect(problemsWith({ guard })).toEqual([
      'vendors[0].name: must be a non-empty string, got nothing',
      "vendors[0].guard.queu: unknown option; did you mean 'queue'?",
      'vendors[0].guard.breaker.slowRate: needs slowMs, the duration from which a call is slow',
      'vendors[0].guard.limits[0].windowMs: must be a duration of at least 1 ms, such as 250 or \'5s\', got "fast"',
      "vendors[0].guard.limits[1].burst: has an effect only with algorithm 'token-bucket'",
      'vendors[0].guard.timeout.adaptive: needs callMs as its initial value',
    ])
  })

  it('guard options that are not an object are reported', () => {
    expect(problemsWith({ name: 'a', guard: 5 })).toEqual([
      'vendors[0].guard: must be an object, got 5',
    ])
  })
})
