/** Waiting calls of a guard, woken by what another pod does: in virtual time, with a near and a distant store. */
import { describe, expect, it } from 'vitest'
import { createGuardPod, EVERYWHERE, fateOf } from './guard-pod.js'

const HOUR = { windowMs: '1h' } as const
const queue = { size: 100, timeoutMs: '3h' } as const

describe.each(EVERYWHERE)('waking waiting calls with a store in %s', (where) => {
  it('setLimits() of another pod starts waiting calls within a second', async () => {
    const { clock, quick, limiter } = createGuardPod(
      { limits: [{ limit: 1, ...HOUR }], queue },
      { where },
    )
    await clock.until(limiter.acquire())
    const calls = [quick(), quick({ lane: 'another' }), quick()]
    await clock.advance(5_000)
    expect(calls.map(fateOf)).toEqual(['pending', 'resolved', 'pending'])
    await clock.until(limiter.setLimits([{ limit: 1_000, ...HOUR }]))
    await clock.advance(1_000)
    expect(calls.map(fateOf)).toEqual(['resolved', 'resolved', 'resolved'])
    expect(fateOf(quick())).not.toContain('VENDOR_LIMITED')
  })

  it('an override of another pod starts waiting calls, and its end is noticed', async () => {
    const { clock, quick, limiter } = createGuardPod(
      { limits: [{ limit: 1, ...HOUR }], queue },
      { where },
    )
    await clock.until(limiter.acquire())
    const first = quick()
    await clock.advance(100)
    await clock.until(limiter.override('requests', 2, '10m'))
    await clock.advance(1_000)
    expect(fateOf(first)).toBe('resolved')
    const second = quick()
    await clock.advance(100)
    // A lower limit for a while: the call starts when it ends, not an hour later.
    await clock.until(limiter.setLimits([{ limit: 100, ...HOUR }]))
    await clock.until(limiter.override('requests', 1, '10m'))
    const third = quick()
    await clock.advance(1_000)
    expect(fateOf(third)).toBe('pending')
    await clock.advance(600_000)
    expect([second, third].map(fateOf)).toEqual(['resolved', 'resolved'])
  })

  it('a settlement of another pod starts a waiting call long before its sleep is over', async () => {
    const { clock, quick, limiter } = createGuardPod(
      { limits: [{ unit: 'tokens', limit: 100, windowMs: '1m' }], queue },
      { where },
    )
    const answer = await clock.until(limiter.acquire({ cost: { tokens: 100 } }))
    const call = quick({ cost: { tokens: 60 } })
    await clock.advance(1_000)
    expect(fateOf(call)).toBe('pending')
    if (answer.allowed) answer.permit.settle({ tokens: 10 })
    await clock.advance(200)
    expect(fateOf(call)).toBe('resolved')
  })

  it('a settlement of a lane starts a call of another lane that waits for a vendor-wide limit', async () => {
    const limits = [{ unit: 'tokens', limit: 100, windowMs: '1m', per: 'vendor' }] as const
    const { clock, quick, limiter } = createGuardPod({ limits, queue }, { where })
    const cost = { tokens: 100 }
    const answer = await clock.until(limiter.acquire({ cost, lane: 'other model' }))
    const call = quick({ cost })
    await clock.advance(1_000)
    expect(fateOf(call)).toBe('pending')
    if (answer.allowed) answer.permit.refund()
    await clock.advance(200)
    expect(fateOf(call)).toBe('resolved')
  })

  it('lost messages cost a waiting call only its normal sleep', async () => {
    const { clock, quick, limiter, connection } = createGuardPod(
      { limits: [{ unit: 'tokens', limit: 100, windowMs: '1m' }], queue },
      { where },
    )
    connection?.losePushes(1)
    const answer = await clock.until(limiter.acquire({ cost: { tokens: 100 } }))
    const call = quick({ cost: { tokens: 60 } })
    await clock.advance(1_000)
    if (answer.allowed) answer.permit.refund()
    await clock.advance(61_000)
    expect(fateOf(call)).toBe('resolved')
  })
})
