/** How a guard reports its attempts to its breaker: retries, hedges, and answers of probes. */
import { createSpillway, type GuardOptions } from 'spillway'
import { memoryStore } from 'spillway/shared'
import { createVirtualClock, sleep } from 'spillway/testing'
import { describe, expect, it } from 'vitest'

const BREAKER = { failureRate: 0.9, minimumCalls: 50 }

function setup(options: GuardOptions) {
  const clock = createVirtualClock()
  const spillway = createSpillway({ store: memoryStore({ clock }), clock })
  const guard = spillway.guard('vendor', options)
  const counts = () => guard.breaker!.snapshot()
  const fails = async () => {
    await sleep(clock, 5)
    throw Object.assign(new Error('broken'), { status: 500 })
  }
  const halfOpen = async () => {
    await guard.breaker!.trip()
    await clock.advance(1_000)
    expect(guard.breaker!.state()).toBe('half-open')
  }
  return { clock, spillway, guard, counts, fails, halfOpen }
}

describe('the breaker of a guard', () => {
  it('breaker counts a call that fails at all attempts once, and each attempt in its row of failures', async () => {
    const { clock, guard, counts, fails } = setup({
      breaker: { failureRate: 0.9, minimumCalls: 50 },
      retry: { attempts: 3 },
    })
    for (let call = 0; call < 5; call++) await clock.until(guard.run(fails).catch(() => {}))
    const { calls, failures, consecutiveFailures } = counts()
    expect({ calls, failures }).toEqual({ calls: 5, failures: 5 })
    expect(consecutiveFailures).toBeGreaterThan(5)
  })

  it('breaker counts a call by its first attempt, although its retry succeeds', async () => {
    const { clock, guard, counts } = setup({
      breaker: { failureRate: 0.9, minimumCalls: 50 },
      retry: { attempts: 3 },
    })
    const flaky = async ({ attempt }: { attempt: number }) => {
      if (attempt === 1) throw Object.assign(new Error('broken'), { status: 500 })
    }
    await clock.until(guard.run(flaky))
    expect(counts()).toMatchObject({ calls: 1, failures: 1, consecutiveFailures: 0 })
  })

  it('breaker opens after consecutiveFailures attempts, retries included', async () => {
    const { clock, guard, fails } = setup({
      breaker: { consecutiveFailures: 3 },
      retry: { attempts: 3 },
    })
    await clock.until(guard.run(fails).catch(() => {}))
    expect(guard.breaker!.state()).toBe('open')
  })

  it('breaker counts an attempt and its hedge as one call', async () => {
    const { clock, guard, counts } = setup({
      breaker: { failureRate: 0.9, minimumCalls: 50 },
      hedge: { delayMs: 100 },
    })
    let attempts = 0
    const slowFirst = async () => {
      const first = ++attempts % 2 === 1
      await sleep(clock, first ? 500 : 50)
      if (!first) throw Object.assign(new Error('broken'), { status: 500 })
    }
    await clock.until(guard.run(slowFirst))
    expect(attempts).toBe(2)
    expect(counts()).toMatchObject({ calls: 1, failures: 0 })
  })

  it.each([
    ['neither has ended', 100, 1_000, 1_000],
    ['the first has failed', 250, 200, 1_000],
    ['the second has failed', 250, 1_000, 100],
  ])(
    'breaker counts two hedged attempts as one call in flight while %s',
    async (_, atMs, ...ms) => {
      const { clock, guard, counts, fails } = setup({
        breaker: BREAKER,
        hedge: { delayMs: 50 },
      })
      let attempts = 0
      const calls = Array.from({ length: 3 }, async () => {
        let own = 0
        return guard
          .run(async () => {
            attempts++
            await sleep(clock, ms[own++] as number)
            throw Object.assign(new Error('broken'), { status: 500 })
          })
          .catch(() => {})
      })
      await clock.advance(atMs)
      expect(attempts).toBe(6)
      // A report carries the number of calls in flight.
      const failing = guard.run(fails).catch(() => {})
      await clock.advance(6)
      expect(counts()).toMatchObject({ inFlight: 3, calls: 1 })
      await clock.until(Promise.all([failing, ...calls]))
      expect(counts()).toMatchObject({ inFlight: 0, calls: 4, failures: 4 })
    },
  )

  it('breaker counts nothing in flight once the hedge of a call has succeeded', async () => {
    const { clock, guard, counts } = setup({ breaker: BREAKER, hedge: { delayMs: 50 } })
    let attempts = 0
    const slowFirst = () => sleep(clock, ++attempts % 2 === 1 ? 10_000 : 20)
    await clock.until(guard.run(slowFirst))
    await clock.advance(200)
    expect(counts()).toMatchObject({ inFlight: 0, calls: 1, failures: 0 })
  })

  it('calls in flight of a replaced guard stay counted beside those of the new guard', async () => {
    const { clock, spillway, guard, fails } = setup({ breaker: BREAKER })
    const before = Array.from({ length: 7 }, () => guard.run(() => sleep(clock, 1_000)))
    await clock.advance(50)
    const next = spillway.replaceGuard('vendor', { breaker: { ...BREAKER, minimumCalls: 60 } })
    const after = Array.from({ length: 3 }, () => next.run(() => sleep(clock, 1_000)))
    await clock.advance(50)
    const report = () => next.run(fails).catch(() => {})
    await clock.until(report())
    expect(next.breaker!.snapshot().inFlight).toBe(10)
    await clock.until(Promise.all(before))
    await clock.until(report())
    expect(next.breaker!.snapshot()).toMatchObject({ inFlight: 3, calls: 9 })
    await clock.until(Promise.all(after))
    await clock.until(report())
    expect(next.breaker!.snapshot()).toMatchObject({ inFlight: 0, calls: 13 })
  })

  it('breaker shows the calls in flight in its snapshot', async () => {
    const { clock, guard, counts } = setup({ breaker: { failureRate: 0.5, minimumCalls: 10 } })
    const calls = Array.from({ length: 7 }, () => guard.run(() => sleep(clock, 1_000)))
    await clock.advance(50)
    expect(counts()).toMatchObject({ calls: 0, inFlight: 7, failures: 0 })
    await clock.until(Promise.all(calls))
    expect(counts()).toMatchObject({ calls: 7, inFlight: 0, failures: 0 })
  })

  it('breaker closes after probes that are answered with 404, streamed or not', async () => {
    const { clock, guard, halfOpen } = setup({
      breaker: { openMs: 1_000, probes: 1, successes: 2 },
    })
    await halfOpen()
    await clock.until(guard.run(() => new Response('not found', { status: 404 })))
    expect(guard.breaker!.snapshot()).toMatchObject({ state: 'half-open', successes: 1 })
    const notFound = Object.assign(new Error('not found'), { status: 404 })
    await expect(clock.until(guard.run(() => Promise.reject(notFound)))).rejects.toBe(notFound)
    expect(guard.breaker!.state()).toBe('closed')
  })

  it.each([429])('breaker stays half-open after a probe answered with %d', async (status) => {
    const { clock, guard, halfOpen } = setup({
      breaker: { openMs: 1_000, probes: 1, successes: 1 },
    })
    await halfOpen()
    await clock.until(guard.run(() => new Response('', { status })))
    expect(guard.breaker!.snapshot()).toMatchObject({ state: 'half-open', probes: 0, successes: 0 })
  })

  it('breaker returns to 100 calls at once within a third of rampMs after it has closed', async () => {
    const { clock, guard } = setup({
      breaker: { openMs: 1_000, rampMs: 6_000, probes: 3, successes: 1 },
    })
    const at = async (count: number, ms: number) => {
      const calls = Array.from({ length: count }, () =>
        guard
          .run(() => sleep(clock, ms))
          .then(
            () => 1,
            () => 0 as number,
          ),
      )
      const passed: number[] = await clock.until(Promise.all(calls))
      return passed.reduce((sum, each) => sum + each, 0)
    }
    expect(await at(100, 10)).toBe(100)
    await guard.breaker!.trip()
    await clock.advance(1_000)
    await clock.until(guard.run(() => 'fine'))
    expect(guard.breaker!.state()).toBe('closed')
    expect(await at(100, 10)).toBe(25)
    await clock.advance(2_000)
    expect(await at(100, 10)).toBe(100)
  })
})
