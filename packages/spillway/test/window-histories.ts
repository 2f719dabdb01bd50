/** Random histories of one sliding-window user limit, for every store that counts it. */
import { expect } from 'vitest'
import type { LevelCharge, LevelReply, LevelStore } from '../src/store/port.js'
import { fc } from './fast-check.js'

export const windowHistories = fc.record({
  // Windows of up to 60 units keep every charge, larger ones share entries.
  limit: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 55, max: 200 })),
  windowUs: fc.oneof(fc.constant(60_000_000), fc.integer({ min: 60, max: 100_000 })),
  steps: fc.array(
    fc.record({
      /** The pause before, as a part of the window. */
      pause: fc.oneof(
        { weight: 6, arbitrary: fc.double({ min: 0, max: 0.02, noNaN: true }) },
        { weight: 1, arbitrary: fc.double({ min: 0, max: 1.2, noNaN: true }) },
      ),
      cost: fc.oneof(
        { weight: 5, arbitrary: fc.constant(1) },
        { weight: 1, arbitrary: fc.nat(20) },
      ),
      /** A request that never started, and the pause before it is refunded; undefined: it started. */
      refundAfter: fc.oneof(
        { weight: 4, arbitrary: fc.constant(undefined) },
        { weight: 1, arbitrary: fc.double({ min: 0, max: 1.2, noNaN: true }) },
      ),
    }),
    { minLength: 60, maxLength: 250 },
  ),
})

export type WindowHistory = typeof windowHistories extends fc.Arbitrary<infer T> ? T : never

interface Start {
  readonly atUs: number
  readonly units: number
}

/**
 * Replays a history and checks every reply: no window has more than `limit` units of requests that started, and a
 * refused request is granted exactly after its wait. `setTime` sets the time of the store.
 */
export async function replayWindow(
  store: LevelStore,
  key: string,
  { limit, windowUs, steps }: WindowHistory,
  setTime: (nowUs: number) => void,
): Promise<{ started: number; refunded: number; refused: number }> {
  const level: LevelCharge = { key, limit, windowUs, burst: limit, algorithm: 'sliding-window' }
  const starts: Start[] = []
  const refunds: { atUs: number; send: () => Promise<void> }[] = []
  const counts = { started: 0, refunded: 0, refused: 0 }
  let nowUs = 4_000_000_000_000_000
  const check = async (cost: number): Promise<LevelReply> => {
    setTime(nowUs)
    return (await store.check([{ levels: [level], cost }]))[0] as LevelReply
  }
  for (const { pause, cost: drawn, refundAfter } of steps) {
    nowUs += Math.round(pause * windowUs)
    for (const refund of refunds.splice(0)) {
      if (refund.atUs > nowUs) refunds.push(refund)
      else await refund.send()
    }
    const cost = Math.max(1, drawn)
    let reply = await check(cost)
    if (reply.refusedBy !== 0) {
      counts.refused++
      expect(reply.waitUs).toBeGreaterThan(0)
      // A refund may make the wait shorter, so the moment is only exact without one.
      if (refunds.length > 0) continue
      nowUs += reply.waitUs - 1
      expect((await check(cost)).refusedBy).toBe(1)
      nowUs += 1
      reply = await check(cost)
      expect(reply.refusedBy).toBe(0)
    }
    const { atUs, fullAtUs } = reply
    expect(atUs).toBe(nowUs)
    if (refundAfter === undefined) {
      starts.push({ atUs: nowUs, units: Math.min(cost, limit) })
      counts.started++
      continue
    }
    const charged = { levels: [level], cost, atUs, fullAtUs }
    const send = async () => {
      setTime(nowUs)
      await store.refund([charged])
      counts.refunded++
    }
    refunds.push({ atUs: nowUs + Math.round(refundAfter * windowUs), send })
  }
  expect(mostInWindow(starts, windowUs)).toBeLessThanOrEqual(limit)
  return counts
}

/** The most units that started in any window of this length. */
function mostInWindow(starts: readonly Start[], windowUs: number): number {
  let most = 0
  let units = 0
  let oldest = 0
  for (const start of starts) {
    units += start.units
    while ((starts[oldest] as Start).atUs + windowUs <= start.atUs) {
      units -= (starts[oldest] as Start).units
      oldest++
    }
    most = Math.max(most, units)
  }
  return most
}
