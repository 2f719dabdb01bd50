import { describe, expect, it } from 'vitest'
import { onEvent, type SpillwayEvent } from '../../core/events.js'
import { createRandom } from '../../core/random.js'
import { sleep } from '../../core/time/sleep.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { createRetryBudget } from '../retry/retry-budget.js'
import { createHedge, type HedgeContext, type HedgeOptions } from './hedge.js'

/** Attempts that take the given time and record whether they were aborted. */
function createWorld(options: HedgeOptions = {}) {
  const clock = createVirtualClock()
  const hedge = createHedge({ clock, budget: 1, ...options })
  const log: string[] = []
  const taking =
    (firstMs: number, secondMs: number) =>
    async ({ signal, hedge: second }: HedgeContext) => {
      const name = second ? 'second' : 'first'
      log.push(`${name} begins at ${clock.now()}`)
      try {
        await sleep(clock, second ? secondMs : firstMs, signal)
      } catch (error) {
        log.push(`${name} aborted at ${clock.now()}`)
        throw error
      }
      return name
    }
  return { clock, hedge, log, taking }
}

describe('hedge', () => {
  it('hedge starts a second attempt after the delay, the first success wins and the other is aborted', async () => {
    const { clock, hedge, log, taking } = createWorld({ delayMs: 100 })
    expect(await clock.until(hedge.run(taking(1_000, 50)))).toBe('second')
    await clock.settle()
    expect(log).toEqual(['first begins at 0', 'second begins at 100', 'first aborted at 150'])
    expect(await clock.until(hedge.run(taking(120, 50)))).toBe('first')
    expect(hedge.snapshot()).toMatchObject({ calls: 2, hedges: 2, won: 1 })
    expect(clock.pending).toBe(0)
  })

  it('hedge keeps a response that both attempts return', async () => {
    const { clock, hedge } = createWorld({ delayMs: 100 })
    const shared = new Response('shared')
    const run = async ({ hedge: second }: HedgeContext) => {
      await sleep(clock, second ? 50 : 200)
      return shared
    }
    expect(await clock.until(hedge.run(run))).toBe(shared)
    await clock.advance(1_000)
    expect(await shared.text()).toBe('shared')
  })

  it('hedge makes no second attempt for a call that is quick enough', async () => {
    const { clock, hedge, taking } = createWorld({ delayMs: 100 })
    expect(await clock.until(hedge.run(taking(99, 1)))).toBe('first')
    await clock.advance(1_000)
    expect(hedge.snapshot()).toMatchObject({ hedges: 0 })
  })

  it('hedge uses the 95th percentile of recent calls as its delay', async () => {
    const { clock, hedge, taking } = createWorld({ minimumCalls: 100 })
    expect(hedge.snapshot().delayMs).toBeUndefined()
    for (let ms = 1; ms <= 100; ms++) await clock.until(hedge.run(taking(ms, 1)))
    await clock.advance(250)
    const { delayMs, hedges } = hedge.snapshot()
    expect(hedges).toBe(0)
    expect(delayMs).toBeGreaterThanOrEqual(94)
    expect(delayMs).toBeLessThanOrEqual(97)
  })

  it('cancelled slow attempts do not make the hedge start earlier and earlier', async () => {
    const { clock, hedge } = createWorld()
    const random = createRandom(5)
    const fn = async ({ signal }: HedgeContext) => {
      const usualMs = 40 + 20 * random()
      await sleep(clock, random() < 0.1 ? usualMs * 20 : usualMs, signal)
    }
    for (let call = 0; call < 2_000; call++) await clock.until(hedge.run(fn))
    const { hedges, calls } = hedge.snapshot()
    expect(hedges / calls).toBeLessThan(0.08)
    expect(hedge.snapshot().delayMs).toBeGreaterThan(50)
  })

  it('hedge without budget lets the first attempt continue alone', async () => {
    const events: SpillwayEvent[] = []
    const stop = onEvent((event) => events.push(event))
    const { clock, hedge, log, taking } = createWorld({ delayMs: 100, budget: 0 })
    expect(await clock.until(hedge.run(taking(1_000, 1)))).toBe('first')
    stop()
    expect(clock.now()).toBe(1_000)
    expect(log).toEqual(['first begins at 0'])
    expect(events).toMatchObject([{ type: 'hedge.skipped', because: 'budget' }])
  })

  it('hedges spend the retry budget', async () => {
    const budgetClock = createVirtualClock()
    const budget = createRetryBudget({ ratio: 0.1, minimum: 0, clock: budgetClock })
    const clock = budgetClock
    const hedge = createHedge({ clock, budget, delayMs: 10 })
    for (let call = 0; call < 100; call++) {
      await clock.until(hedge.run(({ signal }) => sleep(clock, 20, signal)))
    }
    expect(budget.snapshot()).toMatchObject({ requests: 100, retries: 10 })
    expect(hedge.snapshot().hedges).toBe(10)
  })

  it('hedge makes no second attempt while no slot is free', async () => {
    const { clock, hedge, taking } = createWorld({ delayMs: 100, free: () => false })
    expect(await clock.until(hedge.run(taking(500, 1)))).toBe('first')
    expect(hedge.snapshot().hedges).toBe(0)
  })

  it('hedge skips calls that are not idempotent unless they have an idempotency key', async () => {
    const { clock, hedge, taking } = createWorld({ delayMs: 100 })
    const once = { idempotent: false }
    expect(await clock.until(hedge.run(taking(500, 1), once))).toBe('first')
    const keyed = { idempotent: false, idempotencyKey: 'k' }
    expect(await clock.until(hedge.run(taking(500, 1), keyed))).toBe('second')
  })

  it('hedge waits for the other attempt when one fails, and throws the first error when both fail', async () => {
    const { clock, hedge } = createWorld({ delayMs: 100 })
    const failing =
      (which: 'first' | 'both') =>
      async ({ hedge: second }: HedgeContext) => {
        await sleep(clock, 200)
        if (which === 'both' || !second) throw new Error(second ? 'second' : 'first')
        return 'second'
      }
    expect(await clock.until(hedge.run(failing('first')))).toBe('second')
    await expect(clock.until(hedge.run(failing('both')))).rejects.toThrow('first')
  })

  it('an error that is not retryable ends the hedged call at once', async () => {
    const { clock, hedge, log } = createWorld({ delayMs: 100 })
    const wrong = async ({ signal, hedge: second }: HedgeContext) => {
      await sleep(clock, second ? 10_000 : 150, signal).catch(() => log.push('second aborted'))
      throw Object.assign(new Error('no such thing'), { status: 404 })
    }
    await expect(clock.until(hedge.run(wrong))).rejects.toThrow('no such thing')
    await clock.settle()
    expect(clock.now()).toBe(150)
    expect(log).toEqual(['second aborted'])
  })

  it('an abort by the caller ends both attempts and leaves no listener', async () => {
    const { clock, hedge, log, taking } = createWorld({ delayMs: 100 })
    const leaving = new AbortController()
    const call = hedge.run(taking(1_000, 1_000), { signal: leaving.signal })
    const ended = expect(call).rejects.toThrow('gone')
    await clock.advance(200)
    leaving.abort(new Error('gone'))
    await clock.settle()
    await ended
    expect(log.slice(2)).toEqual(['first aborted at 200', 'second aborted at 200'])
    expect(clock.pending).toBe(0)
  })

  it('the body of the winning response stays readable after the other attempt is aborted', async () => {
    const { clock, hedge } = createWorld({ delayMs: 100 })
    const fetching = async ({ signal, hedge: second }: HedgeContext) => {
      await sleep(clock, second ? 10 : 10_000, signal)
      let cancelled = false
      signal.addEventListener('abort', () => {
        cancelled = true
      })
      const body = new ReadableStream({
        async pull(controller) {
          if (cancelled) return controller.error(signal.reason)
          controller.enqueue(new TextEncoder().encode('all of it'))
          controller.close()
        },
      })
      return new Response(body)
    }
    const response = await clock.until(hedge.run(fetching))
    await clock.advance(1_000)
    expect(await response.text()).toBe('all of it')
  })

  it('createHedge names the invalid option', () => {
    expect(() => createHedge({ percentile: 95 })).toThrow(
      'hedge.percentile: must be a number from 0.5 to 0.999, got 95',
    )
    expect(() => createHedge({ delay: 5 } as never)).toThrow("did you mean 'delayMs'?")
  })
})
