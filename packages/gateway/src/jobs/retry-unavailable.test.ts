import { SpillwayError } from 'spillway'
import { createVirtualClock } from 'spillway/testing'
import { describe, expect, it } from 'vitest'
import { retryUnavailable } from './retry-unavailable.js'

const unavailable = new SpillwayError({
  code: 'STORE_UNAVAILABLE',
  stage: 'queue',
  scope: 'shared',
  explain: () => 'Redis does not answer',
})

/** Calls a store that throws `error` for its first `failures` answers. */
function start(failures: number, error: Error) {
  const clock = createVirtualClock()
  const beganMs = clock.now()
  const attemptsMs: number[] = []
  const answer = retryUnavailable(async () => {
    attemptsMs.push(clock.now() - beganMs)
    if (attemptsMs.length <= failures) throw error
    return 'stored'
  }, clock)
  return { clock, attemptsMs, answer }
}

describe('retryUnavailable', () => {
  it('an operation of an unavailable store is repeated after growing pauses', async () => {
    const { clock, attemptsMs, answer } = start(3, unavailable)
    expect(await clock.until(answer)).toBe('stored')
    expect(attemptsMs).toEqual([0, 50, 150, 350])
  })

  it('an operation of an unavailable store is tried six times, then its error is thrown', async () => {
    const { clock, attemptsMs, answer } = start(Number.POSITIVE_INFINITY, unavailable)
    await expect(clock.until(answer)).rejects.toBe(unavailable)
    expect(attemptsMs).toHaveLength(6)
  })

  it('any other error of a store operation is thrown at once', async () => {
    const error = new Error('damaged')
    const { attemptsMs, answer } = start(1, error)
    await expect(answer).rejects.toBe(error)
    expect(attemptsMs).toEqual([0])
  })
})
