/** Errors that several calls share: one call's retries must not end another's. */
import { describe, expect, it } from 'vitest'
import { sleep } from '../src/core/time/sleep.js'
import type { GuardOptions } from '../src/guard/options.js'
import { createSpillway } from '../src/guard/spillway.js'
import { attemptsOf } from '../src/local/retry/attempts.js'
import { createRetry } from '../src/local/retry/retry.js'
import { createTimeout } from '../src/local/timeout/timeout.js'
import { createVirtualClock } from '../src/testing/virtual-clock.js'
import { createGuardPod, EVERYWHERE } from './guard-pod.js'

const ERRORS = {
  'an error object': () => new Error('down'),
  'a frozen error object': () => Object.freeze(new Error('down')),
  'a string': () => 'down',
}

const RETRY = { attempts: 3, baseMs: 100, jitter: 'none' } as const

describe.each(Object.entries(ERRORS))('%s that is thrown by every call', (_, make) => {
  function setup() {
    const clock = createVirtualClock()
    return { clock, error: make(), retry: createRetry({ ...RETRY, clock }) }
  }

  it('a shared error does not end the retries of overlapping calls', async () => {
    const { clock, error, retry } = setup()
    const calls = [0, 0, 0]
    const call = (index: number, takesMs: number) =>
      retry
        .run(async () => {
          calls[index] = (calls[index] ?? 0) + 1
          await sleep(clock, takesMs)
          throw error
        })
        .catch(() => {})
    await clock.until(Promise.all([call(0, 1), call(1, 400), call(2, 2_000)]))
    expect(calls).toEqual([3, 3, 3])
  })

  it('a shared error does not end the retries of calls that fail at the same moment', async () => {
    const { clock, error, retry } = setup()
    let calls = 0
    const fail = () => {
      calls++
      return Promise.reject(error)
    }
    const all = Array.from({ length: 5 }, () => retry.run(fail).catch(() => {}))
    await clock.until(Promise.all(all))
    expect(calls).toBe(15)
  })

  it('a shared error is not retried by a retry around the one that gave up on it', async () => {
    const { clock, error, retry } = setup()
    const outer = createRetry({ ...RETRY, clock })
    let calls = 0
    const inner = async () => {
      await sleep(clock, 1)
      return retry.run(async () => {
        calls++
        await sleep(clock, 1)
        throw error
      })
    }
    await clock.until(outer.run(inner).catch(() => {}))
    expect(calls).toBe(3)
  })

  it('a shared error is not retried by an outer retry with a timeout between the two', async () => {
    const { clock, error, retry } = setup()
    const outer = createRetry({ ...RETRY, clock })
    const timeout = createTimeout({ callMs: 60_000, clock })
    let calls = 0
    const fail = () => {
      calls++
      return Promise.reject(error)
    }
    await clock.until(outer.run(() => timeout.run(() => retry.run(fail))).catch(() => {}))
    expect(calls).toBe(3)
  })

  it('a shared error is retried by the outer retry if the inner one makes a single attempt', async () => {
    const { clock, error } = setup()
    const outer = createRetry({ ...RETRY, clock })
    const once = createRetry({ attempts: 1, clock })
    let calls = 0
    const fail = () => {
      calls++
      return Promise.reject(error)
    }
    await clock.until(outer.run(() => once.run(fail)).catch(() => {}))
    expect(calls).toBe(3)
  })

  describe.each(EVERYWHERE)('in a guard with store %s', (where) => {
    const options: GuardOptions = { retry: { ...RETRY, budget: 1 } }

    it('a shared error does not end the retries of overlapping calls of a guard', async () => {
      const { clock, run, quick } = createGuardPod(options, { where })
      // The budget allows retries in proportion to the calls.
      for (let made = 0; made < 20; made++) quick()
      await clock.advance(100)
      const error = make()
      const calls = [0, 0, 0]
      const all = [1, 400, 2_000].map((takesMs, index) =>
        run(async () => {
          calls[index] = (calls[index] ?? 0) + 1
          await sleep(clock, takesMs)
          throw error
        }),
      )
      await clock.advance(20_000)
      expect(all.map(({ state }) => state)).toEqual(['rejected', 'rejected', 'rejected'])
      expect(calls).toEqual([3, 3, 3])
    })

    it('a shared error is not retried by a guard around the retry that gave up on it', async () => {
      const { clock, run } = createGuardPod(options, { where })
      const inner = createRetry({ ...RETRY, clock })
      const error = make()
      let calls = 0
      const call = run(async () => {
        await sleep(clock, 1)
        return inner.run(() => {
          calls++
          return Promise.reject(error)
        })
      })
      await clock.advance(20_000)
      expect(call.state).toBe('rejected')
      expect(calls).toBe(3)
    })

    it('a shared error is not retried by a guard in whose second attempt a retry gave up on it', async () => {
      const { clock, run } = createGuardPod(options, { where })
      const inner = createRetry({ ...RETRY, clock })
      const error = make()
      let attempts = 0
      let calls = 0
      run(() => {
        if (++attempts === 1) throw new Error('first')
        return inner.run(() => {
          calls++
          return Promise.reject(error)
        })
      })
      await clock.advance(20_000)
      expect({ attempts, calls }).toEqual({ attempts: 2, calls: 3 })
    })
  })
})

describe('a response that a retry gave up on', () => {
  const retry = { ...RETRY, budget: 1 }
  const PATHS: Record<string, GuardOptions[]> = {
    'one guard': [{ retry }],
    'two guards': [{ retry }, { retry }],
    'a guard without retries and one with': [{ concurrency: { limit: 5 } }, { retry }],
  }

  it.each(Object.entries(PATHS))(
    'a streamed 503 is not retried by %s around the retry',
    async (_, path) => {
      const clock = createVirtualClock()
      const spillway = createSpillway({ clock })
      let calls = 0
      const inner = createRetry({ ...RETRY, clock })
      let call: () => Promise<Response> = () =>
        inner.run(async () => {
          calls++
          return new Response('busy', { status: 503 })
        })
      for (const [index, options] of path.entries()) {
        const guard = spillway.guard(`guard-${index}`, options)
        const below = call
        call = () => guard.run(below)
      }
      const response = await clock.until(call())
      expect({ status: response.status, text: await response.text() }).toEqual({
        status: 503,
        text: 'busy',
      })
      expect(calls).toBe(3)
      await clock.until(spillway.close({ graceMs: 0 }))
    },
  )
})

describe('attempts of a frozen error', () => {
  it('tryRun returns the attempts of a frozen error, which cannot carry them', async () => {
    const clock = createVirtualClock()
    const error = Object.freeze(new Error('down'))
    const result = await clock.until(
      createRetry({ ...RETRY, clock }).tryRun(() => Promise.reject(error)),
    )
    expect(result).toMatchObject({ ok: false, attempts: [{}, {}, {}] })
    expect(attemptsOf(error)).toEqual([])
  })
})

describe('a rejection with undefined', () => {
  it('an inner retry that gave up on undefined does not end the retries of another error', async () => {
    const clock = createVirtualClock()
    const inner = createRetry({ ...RETRY, clock })
    const outer = createRetry({ ...RETRY, clock })
    let calls = 0
    const call = outer.run(async () => {
      calls++
      await inner.run(() => Promise.reject(undefined)).catch(() => {})
      throw new Error('down')
    })
    await expect(clock.until(call)).rejects.toThrow('down')
    expect(calls).toBe(3)
  })
})
