/** Hedges inside a guard: what they take, which attempt wins and what the other returns. */
import { describe, expect, it } from 'vitest'
import { onEvent } from '../../src/core/events.js'
import { createRandom } from '../../src/core/random.js'
import { sleep } from '../../src/core/time/sleep.js'
import type { GuardOptions } from '../../src/guard/options.js'
import type { CallContext } from '../../src/guard/pipeline/context.js'
import { createVendor } from '../../src/testing/vendor.js'
import { createGuardPod, createJob, EVERYWHERE, type Where, watch } from '../guard-pod.js'

const HEDGED: GuardOptions = { hedge: { delayMs: 100 }, concurrency: { limit: 10 } }

function createWorld(options: GuardOptions = HEDGED, where: Where = 'memory') {
  const pod = createGuardPod(options, { where })
  const { clock } = pod
  const log: string[] = []
  const taking =
    (firstMs: number, secondMs: number) =>
    async ({ signal, hedge, lane }: CallContext) => {
      const name = hedge ? 'second' : 'first'
      log.push(`${name} in ${lane}`)
      try {
        await sleep(clock, hedge ? secondMs : firstMs, signal)
      } catch (error) {
        log.push(`${name} aborted`)
        throw error
      }
      return name
    }
  return { ...pod, log, taking }
}

describe.each(EVERYWHERE)('hedged call, store: %s', (where) => {
  const options: GuardOptions = {
    ...HEDGED,
    breaker: { consecutiveFailures: 3 },
    limits: [{ limit: 100, windowMs: '1m' }],
  }

  it('the first success wins, and the other attempt is aborted and returns everything', async () => {
    const { clock, guard, run, log, used, taking } = createWorld(options, where)
    const call = run(taking(5_000, 50))
    await clock.advance(200)
    expect(call).toMatchObject({ state: 'resolved', value: 'second' })
    expect(log).toEqual(['first in default', 'second in default', 'first aborted'])
    expect(guard.snapshot()).toMatchObject({
      active: 0,
      attempts: 2,
      outcomes: { success: 1, ignored: 1, failure: 0 },
      hedges: { made: 1, won: 1 },
    })
    expect(await used()).toBe(2)
    expect(guard.breaker?.state()).toBe('closed')
  })

  it('the first attempt continues alone when the limits have no unit left for a hedge', async () => {
    const limits = [{ limit: 1, windowMs: 60_000 }]
    const { clock, guard, run, taking } = createWorld({ ...options, limits }, where)
    const call = run(taking(1_000, 1))
    await clock.advance(1_100)
    expect(call).toMatchObject({ state: 'resolved', value: 'first' })
    expect(guard.snapshot()).toMatchObject({ active: 0, hedges: { made: 0 } })
  })

  it('a hedge that the limits refuse does not keep a pod that waits from being woken', async () => {
    const limits = [
      { unit: 'tokens', limit: 100, windowMs: '10m', algorithm: 'token-bucket' },
    ] as const
    const all = { ...options, limits: [...limits], queue: { size: 5, timeoutMs: '10m' } } as const
    const { clock, guard, run, limiter } = createWorld(all, where)
    const settling = async ({ settle }: CallContext) => {
      await sleep(clock, 1_000)
      settle({ tokens: 10 })
    }
    run(settling, { cost: { tokens: 60 } })
    await clock.advance(200)
    expect(guard.snapshot().hedges).toMatchObject({ made: 0 })
    const other = watch(clock, limiter.acquireWithin('5m', { cost: { tokens: 60 } }))
    await clock.advance(2_000)
    expect(other.state).toBe('resolved')
  })

  it('permits of a hedge that is no longer needed are returned', async () => {
    const { clock, guard, run, used, taking } = createWorld(options, where)
    // Answered during the permit round trip if the store is remote.
    const call = run(taking(where === 'memory' ? 101 : 105, 1_000))
    await clock.advance(2_000)
    expect(call.value).toBe('first')
    expect(guard.snapshot().active).toBe(0)
    expect(await used()).toBeLessThanOrEqual(2)
  })
})

describe('hedge that asks a remote store', () => {
  const limits = [{ limit: 100, windowMs: '1m' } as const]

  it('a hedge whose permit arrives too late is not started and returns permit and slot', async () => {
    const options: GuardOptions = { ...HEDGED, limits, jitterMs: 50 }
    const { clock, guard, run, log, used, taking, connection } = createWorld(options, 'remote')
    run(taking(1_000, 1))
    await clock.advance(90)
    connection?.setLatency(40)
    await clock.advance(500)
    expect(log).toEqual(['first in default'])
    expect(guard.snapshot()).toMatchObject({ active: 1, hedges: { made: 0 } })
    expect(await used()).toBe(1)
  })

  it('a hedge is not started if the circuit opens while its permit is requested', async () => {
    const breaker = { consecutiveFailures: 3 }
    const world = createWorld({ ...HEDGED, limits, breaker }, 'remote')
    const { clock, guard, run, log, used, taking, connection } = world
    run(taking(1_000, 1))
    await clock.advance(90)
    connection?.setLatency(10)
    await clock.advance(11)
    await world.breaker.isolate('10m')
    await clock.advance(500)
    expect(log).toEqual(['first in default'])
    expect(guard.snapshot()).toMatchObject({ active: 1, hedges: { made: 0 } })
    expect(await used()).toBe(1)
  })

  it('a hedge that the store refuses returns its slot', async () => {
    const options: GuardOptions = { ...HEDGED, limits: [{ limit: 3, windowMs: '1m' }] }
    const all = { ...options, concurrency: { limit: 2 }, queue: { size: 5 } }
    const { clock, run, limiter, taking, quick } = createWorld(all, 'remote')
    run(taking(1_000, 1))
    await clock.advance(90)
    const others = [await limiter.acquire(), await limiter.acquire()]
    await clock.advance(100)
    for (const each of others) if (each.allowed) each.permit.refund()
    await clock.advance(100)
    const next = quick()
    await clock.advance(100)
    expect(next.state).toBe('resolved')
  })
})

describe('guard hedge', () => {
  it('a hedge takes only a free slot and does not overtake queued calls', async () => {
    const options = { ...HEDGED, concurrency: { limit: 1 }, queue: { size: 5 } }
    const { clock, guard, run, log, taking } = createWorld(options)
    const calls = [run(taking(500, 1)), run(taking(500, 1))]
    await clock.advance(1_100)
    expect(calls.map(({ value }) => value)).toEqual(['first', 'first'])
    expect(log).toEqual(['first in default', 'first in default'])
    expect(guard.snapshot().hedges).toMatchObject({ made: 0 })
  })

  it('a hedge without budget is skipped and fails no call', async () => {
    const skipped: string[] = []
    const stop = onEvent((event) => {
      if (event.type === 'hedge.skipped') skipped.push(event.because)
    })
    const { clock, run, taking } = createWorld({ ...HEDGED, retry: { budget: 0 } })
    const call = run(taking(1_000, 1))
    await clock.advance(1_000)
    stop()
    expect(call).toMatchObject({ state: 'resolved', value: 'first', atMs: 1_000 })
    expect(skipped).toEqual(['budget'])
  })

  it('hedges and retries share one budget', async () => {
    const { clock, guard, run, taking } = createWorld({ ...HEDGED, retry: { budget: 0.1 } })
    for (let call = 0; call < 50; call++) {
      run(taking(150, 150))
      await clock.advance(200)
    }
    expect(guard.snapshot()).toMatchObject({ hedges: { made: 5 }, retries: { retries: 5 } })
  })

  it('guard hedges a call that is not idempotent only with an idempotency key', async () => {
    const { clock, guard, run, taking } = createWorld()
    const plain = run(taking(500, 1), { idempotent: false })
    await clock.advance(1_000)
    expect(plain.value).toBe('first')
    const keyed = run(taking(500, 1), { idempotent: false, idempotencyKey: 'k' })
    await clock.advance(1_000)
    expect(keyed.value).toBe('second')
    expect(guard.snapshot().hedges).toMatchObject({ made: 1 })
  })

  it('guard never hedges a probe', async () => {
    const breaker = { consecutiveFailures: 1, openMs: '1s', probes: 1 } as const
    const { clock, guard, run, taking, log } = createWorld({ ...HEDGED, breaker })
    run(() => Promise.reject(new Error('down')))
    await clock.advance(1_100)
    const probe = run(taking(500, 1))
    await clock.advance(1_000)
    expect(probe.value).toBe('first')
    expect(log).toEqual(['first in default'])
    expect(guard.snapshot().hedges).toMatchObject({ made: 0 })
  })

  it('a hedge in another lane is neither made for a probe nor a probe itself', async () => {
    const { clock, guard, run, taking, log } = createWorld({
      hedge: { delayMs: 100, lane: 'replica' },
      breaker: { consecutiveFailures: 1, openMs: '1s', probes: 1 },
    })
    const open = async (lane: string) => {
      run(() => Promise.reject(new Error('down')), { lane })
      await clock.advance(1_100)
    }
    await open('main')
    run(taking(500, 1), { lane: 'main' })
    await clock.advance(1_000)
    expect(log).toEqual(['first in main'])
    await open('replica')
    run(taking(500, 1), { lane: 'main' })
    await clock.advance(1_000)
    expect(log).toEqual(['first in main', 'first in main'])
    expect(guard.snapshot().hedges).toMatchObject({ made: 0 })
  })

  it('a hedge takes no units that a queued call of any lane waits for', async () => {
    const { clock, guard, run, taking, log } = createWorld({
      ...HEDGED,
      limits: [{ unit: 'tokens', limit: 100, windowMs: '10s', per: 'vendor' }],
      queue: { size: 5, timeoutMs: '1m' },
    })
    run(taking(5_000, 1), { lane: 'a', cost: { tokens: 10 } })
    run(taking(1, 1), { lane: 'b', cost: { tokens: 95 } })
    await clock.advance(500)
    expect(log).toEqual(['first in a'])
    expect(guard.snapshot()).toMatchObject({ queue: { waiting: 1 }, hedges: { made: 0 } })
  })

  it('a hedge can use another lane with its own slot, breaker and limits', async () => {
    const { clock, run, log, used, taking } = createWorld({
      hedge: { delayMs: 100, lane: 'replica' },
      limits: [{ limit: 100, windowMs: '1m' }],
    })
    const call = run(taking(500, 10), { lane: 'main' })
    await clock.advance(200)
    expect(call.value).toBe('second')
    expect(log).toEqual(['first in main', 'second in replica', 'first aborted'])
    expect([await used('main'), await used('replica')]).toEqual([1, 1])
  })

  it('when the first attempt fails, the call waits for the hedge before it retries', async () => {
    const { clock, guard, run } = createWorld({ ...HEDGED, retry: { attempts: 3, budget: 1 } })
    const call = run(async ({ hedge }) => {
      await sleep(clock, hedge ? 200 : 150)
      if (!hedge) throw Object.assign(new Error('down'), { status: 503 })
      return 'second'
    })
    await clock.advance(1_000)
    expect(call).toMatchObject({ value: 'second', atMs: 300 })
    expect(guard.snapshot().attempts).toBe(2)
  })

  it('when the hedge fails as well, the call is retried', async () => {
    const { clock, guard, run } = createWorld({
      ...HEDGED,
      retry: { attempts: 2, budget: 1, baseMs: 10 },
    })
    const call = run(async ({ attempt }) => {
      await sleep(clock, 150)
      if (attempt === 1) throw Object.assign(new Error('down'), { status: 503 })
      return attempt
    })
    await clock.advance(2_000)
    expect(call.value).toBe(2)
    expect(guard.snapshot().attempts).toBe(4)
  })

  it('an abort by the caller ends both attempts', async () => {
    const { clock, guard, run, log, taking } = createWorld()
    const leaving = new AbortController()
    const call = run(taking(5_000, 5_000), { signal: leaving.signal })
    await clock.advance(200)
    leaving.abort(new Error('gone'))
    await clock.settle()
    expect(call.state).toBe('rejected')
    expect(log.slice(2).sort()).toEqual(['first aborted', 'second aborted'])
    expect(guard.snapshot().active).toBe(0)
    expect(clock.pending).toBe(0)
  })

  it('hedge delay is the measured percentile when delayMs is not set', async () => {
    const { clock, guard, run, taking } = createWorld({ hedge: { minimumCalls: 50 } })
    for (let ms = 51; ms <= 150; ms++) {
      run(taking(ms, 1))
      await clock.advance(ms)
    }
    await clock.advance(300)
    const { delayMs } = guard.snapshot().hedges ?? {}
    expect(delayMs).toBeGreaterThanOrEqual(140)
    expect(delayMs).toBeLessThanOrEqual(150)
  })

  it('closing the guard leaves no hedge timer and no slot', async () => {
    const { clock, guard, run } = createWorld()
    const job = createJob()
    run(job.fn)
    await clock.advance(150)
    expect(job.running).toBe(2)
    await clock.until(guard.close({ graceMs: 10 }))
    expect(job.running).toBe(0)
    expect(guard.snapshot().active).toBe(0)
    expect(clock.pending).toBe(0)
  })

  it("the winner's body stays readable and the body of a failed answer is released", async () => {
    const { clock, run } = createWorld()
    let released = 0
    const stream = (text: string, signal: AbortSignal) =>
      new ReadableStream({
        async pull(controller) {
          await sleep(clock, 50, signal)
          controller.enqueue(new TextEncoder().encode(text))
          controller.close()
        },
        cancel() {
          released++
        },
      })
    const call = run(async ({ hedge, signal }) => {
      await sleep(clock, hedge ? 100 : 120, signal)
      if (!hedge) return new Response(stream('busy', signal), { status: 503 })
      return new Response(stream('all of it', signal))
    })
    await clock.advance(250)
    expect(call.state).toBe('resolved')
    const text = (call.value as Response).text()
    expect(await clock.until(text)).toBe('all of it')
    expect(released).toBe(1)
  })

  it("the winner's body stays readable although the other attempt is cut off in its call", async () => {
    const { clock, guard, run } = createWorld()
    const call = run(async ({ hedge, signal }) => {
      await sleep(clock, hedge ? 10 : 10_000, signal)
      return new Response(
        new ReadableStream({
          async pull(controller) {
            await sleep(clock, 500, signal)
            controller.enqueue(new TextEncoder().encode('all of it'))
            controller.close()
          },
        }),
      )
    })
    await clock.advance(120)
    expect(await clock.until((call.value as Response).text())).toBe('all of it')
    expect(guard.snapshot()).toMatchObject({ active: 0, bodies: { complete: 1 } })
  })
})

it('hedging cuts the p99 of a vendor with 2 % slow calls to a third', async () => {
  const tail = async (hedge: GuardOptions['hedge']) => {
    const { clock, guard } = createGuardPod(hedge === undefined ? {} : { hedge })
    const vendor = createVendor({
      clock,
      random: createRandom(1),
      serviceMs: (draw) => (40 + 20 * draw()) * (draw() < 0.02 ? 20 : 1),
    })
    const tookMs: number[] = []
    for (let call = 0; call < 2_000; call++) {
      const startMs = clock.now()
      void guard
        .run(({ signal }) => vendor.call({ signal }))
        .then(() => tookMs.push(clock.now() - startMs))
      await clock.advance(10)
    }
    await clock.advance(2_000)
    tookMs.sort((a, b) => a - b)
    return { p99: tookMs[1_980] as number, extra: vendor.arrivalCount / 2_000 - 1 }
  }
  const [without, hedged] = [await tail(undefined), await tail({})]
  expect(without.p99 / hedged.p99).toBeGreaterThanOrEqual(3)
  expect(hedged.extra).toBeLessThanOrEqual(0.06)
})
