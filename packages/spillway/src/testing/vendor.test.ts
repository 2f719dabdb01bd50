import { describe, expect, it } from 'vitest'
import { fc } from '../../test/fast-check.js'
import { ArrivalLog } from '../core/collections/arrival-log.js'
import { isResponse, judge } from '../core/outcome.js'
import { createRandom } from '../core/random.js'
import { createVendor, type VendorCallOptions, type VendorOptions } from './vendor.js'
import { createVirtualClock } from './virtual-clock.js'

function setup(options: Partial<VendorOptions> = {}) {
  const clock = createVirtualClock()
  const vendor = createVendor({ clock, random: createRandom(1), serviceMs: 100, ...options })
  const ends: string[] = []
  /** Records how and when a call ended. */
  const call = (name: string, callOptions?: VendorCallOptions) => {
    vendor.call(callOptions).then(
      ({ status }) => ends.push(`${name}: ${status} at ${clock.now()}`),
      (error) => ends.push(`${name}: ${error.status ?? error.message} at ${clock.now()}`),
    )
  }
  return { clock, vendor, call, ends }
}

describe('simulated vendor', () => {
  it('vendor answers successfully after its service time', async () => {
    const { clock, vendor } = setup()
    const answer = await clock.until(vendor.call())
    expect(clock.now()).toBe(100)
    expect(isResponse(answer)).toBe(true)
    expect(judge({ value: answer }).outcome).toBe('success')
    expect(vendor.calls).toEqual({ succeeded: 1, failed: 0, throttled: 0, aborted: 0 })
  })

  it('vendor draws service times from a distribution and receives calls after travelMs', async () => {
    const { clock, vendor, call, ends } = setup({
      serviceMs: (random) => (random() < 2 ? 7 : 0),
      travelMs: 5,
    })
    call('a')
    await clock.advance(20)
    expect(ends).toEqual(['a: 200 at 12'])
    expect([...vendor.arrivals]).toEqual([5])
  })

  it('vendor rejects a distribution that returns a negative time', async () => {
    const { vendor } = setup({ serviceMs: () => -1 })
    await expect(vendor.call()).rejects.toThrow(
      'a distribution must return a number of at least 0, got -1',
    )
  })

  it('vendor fails the configured share of calls', async () => {
    const { clock, vendor } = setup({ failureRate: 0.3 })
    await clock.until(Promise.all(Array.from({ length: 1_000 }, () => vendor.call())))
    expect(vendor.calls.failed / 1_000).toBeCloseTo(0.3, 1)
    expect(vendor.calls.failed + vendor.calls.succeeded).toBe(1_000)
  })

  it('failAll() also fails calls in progress', async () => {
    const { clock, vendor, call, ends } = setup()
    call('before')
    await clock.advance(50)
    vendor.failAll()
    call('during')
    await clock.advance(100)
    vendor.recover()
    call('after')
    await clock.advance(100)
    expect(ends).toEqual(['before: 503 at 100', 'during: 503 at 150', 'after: 200 at 250'])
  })

  it("answers: 'throw' throws SDK errors that are judged like responses", async () => {
    const { clock, vendor } = setup({ answers: 'throw' })
    vendor.failAll()
    const failed = await clock.until(vendor.call().catch((error: unknown) => error))
    expect(judge({ error: failed }).outcome).toBe('failure')
    vendor.throttle(2_000)
    const refused = await clock.until(vendor.call().catch((error: unknown) => error))
    expect(judge({ error: refused })).toMatchObject({ outcome: 'throttled', retryAfterMs: 2_000 })
    vendor.recover()
    expect(await clock.until(vendor.call())).toMatchObject({ status: 200, ok: true })
  })
})

describe('vendor capacity', () => {
  it('calls beyond the capacity of the vendor wait', async () => {
    const { clock, vendor, call, ends } = setup({ capacity: 2 })
    for (const name of ['a', 'b', 'c', 'd', 'e']) call(name)
    expect([vendor.atOnce, vendor.waiting]).toEqual([5, 3])
    await clock.drain()
    expect(ends).toEqual([
      'a: 200 at 100',
      'b: 200 at 100',
      'c: 200 at 200',
      'd: 200 at 200',
      'e: 200 at 300',
    ])
    expect([vendor.atOnce, vendor.mostAtOnce]).toEqual([0, 5])
  })

  it("beyondCapacity: 'slow' slows all calls in proportion", async () => {
    const { clock, call, ends } = setup({ capacity: 1, beyondCapacity: 'slow' })
    call('a')
    await clock.advance(50)
    call('b')
    await clock.drain()
    // 50 ms alone, then half speed for two: a ends after 100 ms more and b has half of its work
    // left.
    expect(ends).toEqual(['a: 200 at 150', 'b: 200 at 200'])
  })

  it('both kinds of capacity do the same work in the same time', async () => {
    const plan = fc.array(
      fc.record({ gapMs: fc.nat(50), workMs: fc.integer({ min: 1, max: 200 }) }),
      {
        minLength: 1,
      },
    )
    await fc.assert(
      fc.asyncProperty(plan, async (calls) => {
        const lastEndMs = async (beyondCapacity: 'queue' | 'slow') => {
          let next = 0
          const serviceMs = () => (calls[next++] as { workMs: number }).workMs
          const { clock, call, vendor } = setup({ capacity: 1, beyondCapacity, serviceMs })
          for (const { gapMs } of calls) {
            await clock.advance(gapMs)
            call('x')
          }
          await clock.drain()
          expect(vendor.calls.succeeded).toBe(calls.length)
          return clock.now()
        }
        expect(await lastEndMs('slow')).toBeCloseTo(await lastEndMs('queue'), 6)
      }),
      { numRuns: 30 },
    )
  })

  it('an aborted call frees capacity at once, running or waiting', async () => {
    const { clock, vendor, call, ends } = setup({ capacity: 1 })
    const first = new AbortController()
    const second = new AbortController()
    call('a', { signal: first.signal })
    call('b', { signal: second.signal })
    call('c')
    await clock.advance(10)
    second.abort(new Error('left the line'))
    first.abort(new Error('left'))
    await clock.drain()
    expect(ends).toEqual(['b: left the line at 10', 'a: left at 10', 'c: 200 at 110'])
    expect(vendor.calls).toMatchObject({ succeeded: 1, aborted: 2 })
    expect(vendor.atOnce).toBe(0)
  })

  it('an abort after the answer changes nothing', async () => {
    const { clock, vendor } = setup()
    const caller = new AbortController()
    await clock.until(vendor.call({ signal: caller.signal }))
    caller.abort()
    expect(vendor.calls).toMatchObject({ succeeded: 1, aborted: 0 })
    expect(vendor.atOnce).toBe(0)
  })

  it('hanging calls occupy capacity until they are aborted', async () => {
    const { clock, vendor, call, ends } = setup({ capacity: 1, hangRate: 1 })
    const patience = new AbortController()
    call('hangs', { signal: patience.signal })
    vendor.hangSome(0)
    call('waits')
    vendor.recover()
    await clock.advance(3_600_000)
    expect(ends).toEqual([])
    patience.abort(new Error('gave up'))
    await clock.drain()
    expect(ends).toEqual(['hangs: gave up at 3600000', 'waits: 200 at 3600100'])
    call('hangs again')
    await clock.drain()
    expect(vendor.atOnce).toBe(1)
  })

  it('a call aborted on its way counts as an arrival but causes no work', async () => {
    const { clock, vendor, call, ends } = setup({ capacity: 1, travelMs: 20 })
    const caller = new AbortController()
    call('a', { signal: caller.signal })
    await clock.advance(10)
    caller.abort(new Error('left'))
    await clock.drain()
    expect(ends).toEqual(['a: left at 10'])
    expect([vendor.arrivalCount, vendor.mostAtOnce, vendor.atOnce]).toEqual([1, 0, 0])
    expect(vendor.calls.aborted).toBe(1)
    await expect(vendor.call({ signal: caller.signal })).rejects.toThrow('left')
    expect(vendor.arrivalCount).toBe(1)
  })

  it('brownOut() also slows calls in progress, and recover() ends it', async () => {
    const { clock, vendor, call, ends } = setup()
    call('a')
    await clock.advance(50)
    vendor.brownOut(10)
    await clock.advance(250)
    vendor.recover()
    await clock.drain()
    expect(ends).toEqual(['a: 200 at 325'])
  })
})

describe('vendor limits', () => {
  it('vendor refuses exactly the calls beyond its limit in any window, with Retry-After', async () => {
    const { clock, vendor } = setup({ limits: [{ limit: 2, windowMs: '10s' }] })
    const statusNow = async () => {
      const { status, headers } = await clock.until(vendor.call())
      return [status, headers.get('Retry-After')]
    }
    expect(await statusNow()).toEqual([200, null])
    await clock.advance(4_900)
    expect(await statusNow()).toEqual([200, null])
    expect(await statusNow()).toEqual([429, '5'])
    await clock.advance(10_000 - 1 - clock.now())
    expect(await statusNow()).toEqual([429, '0'])
    expect(await statusNow()).toEqual([200, null])
    expect(vendor.mostInAnyWindow('10s')).toBe(4)
    expect(vendor.calls.throttled).toBe(2)
  })

  it('vendor limits count other units, and refusals cost nothing', async () => {
    const { clock, vendor } = setup({
      limits: [
        { limit: 100, windowMs: '1m' },
        { unit: 'tokens', limit: 1_000, windowMs: '1m' },
      ],
    })
    const status = async (tokens: number) =>
      (await clock.until(vendor.call({ cost: { tokens } }))).status
    expect([await status(600), await status(600), await status(400), await status(1)]).toEqual([
      200, 429, 200, 429,
    ])
    expect(vendor.mostInAnyWindow('1m', 'tokens')).toBe(1_601)
    expect(vendor.mostInAnyWindow('1m')).toBe(4)
    expect(vendor.mostInAnyWindow('1m', 'images')).toBe(0)
  })

  it('scaleLimits() changes a limit for calls from now on, and earlier calls still count', async () => {
    const { clock, vendor } = setup({ limits: [{ limit: 4, windowMs: '1m' }] })
    const statusesOf = async (calls: number) => {
      const answers = await clock.until(
        Promise.all(Array.from({ length: calls }, () => vendor.call())),
      )
      return answers.map(({ status }) => status)
    }
    expect(await statusesOf(2)).toEqual([200, 200])
    vendor.scaleLimits(0.5)
    expect(await statusesOf(1)).toEqual([429])
    vendor.scaleLimits(1.25)
    expect(await statusesOf(4)).toEqual([200, 200, 200, 429])
  })

  it('a refusal takes a moment, so an immediate retry loop does not stop time', async () => {
    const { clock, vendor } = setup()
    vendor.throttle('1s')
    const stubborn = async () => {
      while ((await vendor.call()).status === 429);
    }
    await clock.until(stubborn())
    expect(vendor.calls.throttled).toBe(1_000)
  })
})

describe('ArrivalLog', () => {
  it('arrival log finds the fullest window exactly', () => {
    const arrivals = fc.array(
      fc.record({ gapMs: fc.nat(20), amount: fc.integer({ min: 1, max: 3 }) }),
    )
    fc.assert(
      fc.property(arrivals, fc.integer({ min: 1, max: 100 }), (all, windowMs) => {
        const log = new ArrivalLog()
        let nowMs = 0
        const logged = all.map(({ gapMs, amount }) => {
          nowMs += gapMs
          log.add(nowMs, amount)
          return { atMs: nowMs, amount }
        })
        // A fullest window always begins with an arrival.
        const sums = logged.map(({ atMs: from }) => {
          const inside = logged.filter(({ atMs }) => atMs >= from && atMs < from + windowMs)
          return inside.reduce((sum, { amount }) => sum + amount, 0)
        })
        expect(log.mostIn(windowMs)).toBe(Math.max(0, ...sums))
      }),
    )
  })

  it('arrival log holds any number of arrivals with different amounts', () => {
    const log = new ArrivalLog()
    for (let i = 0; i < 3_000; i++) log.add(i, 1)
    log.add(3_000, 5)
    for (let i = 3_001; i < 5_000; i++) log.add(i, 1)
    expect(log.mostIn(10_000)).toBe(5_004)
    expect(log.mostIn(1)).toBe(5)
    expect(log.times).toHaveLength(5_000)
  })
})
