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
  const askedMs: number[] = []
  const answer = retryUnavailable(async () => {
    askedMs.push(clock.now() - beganMs)
    if (askedMs.length <= failures) throw error
    return 'stored'
  }, clock)
  return { clock, askedMs, answer }
}

describe('retryUnavailable', () => {
  it('an unavailable store is asked again after growing pauses', async () => {
    const { clock, askedMs, answer } = start(3, unavailable)
    expect(await clock.until(answer)).toBe('stored')
    expect(askedMs).toEqual([0, 50, 150, 350])
  })

  it('a store that stays unavailable is asked six times, then the error is thrown', async () => {
    const { clock, askedMs, answer } = start(Number.POSITIVE_INFINITY, unavailable)
    await expect(clock.until(answer)).rejects.toBe(unavailable)
    expect(askedMs).toHaveLength(6)
  })

  it('any other error of a store is thrown at once', async () => {
    const error = new Error('damaged')
    const { askedMs, answer } = start(1, error)
    await expect(answer).rejects.toBe(error)
    expect(askedMs).toEqual([0])
  })
})
