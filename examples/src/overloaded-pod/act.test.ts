import { createVirtualClock } from 'spillway/testing'
import { beforeAll, describe, expect, it } from 'vitest'
import { ACTS, type Act, play } from './act.js'
import { CAPACITY, PHASES } from './scenario.js'
import type { Summary } from './summary.js'

/** The second one only in `npm run test:long`. */
const SEEDS = process.env.SPILLWAY_TEST_LONG === undefined ? [1] : [1, 2]
const [unprotected, withSpillway] = ACTS as [Act, Act]

function playFast(act: Act, seed: number): Promise<Summary> {
  const clock = createVirtualClock({ quick: true })
  return clock.until(play(act, { clock, seed }))
}

describe.each(SEEDS)('overloaded-pod with the clients of seed %i', (seed) => {
  let naive: Summary
  let ours: Summary

  beforeAll(async () => {
    naive = await playFast(unprotected, seed)
    ours = await playFast(withSpillway, seed)
  })

  it('both pods answer nearly all requests under normal load', () => {
    for (const { goodput } of [naive, ours]) {
      expect(goodput.before).toBeGreaterThan(0.85 * PHASES.before.offered)
    }
  })

  it('the overload takes the unprotected pod down', () => {
    expect(naive.goodput.overload).toBeLessThan(0.5 * CAPACITY)
    expect(naive.overload['timed out']).toBeGreaterThan(0.5)
  })

  it('the unprotected pod stays down after the overload because of its own retries', () => {
    expect(naive.recoveryMs).toBeUndefined()
    expect(naive.goodput.after).toBeLessThan(0.5 * PHASES.after.offered)
    expect(naive.callsPerRequest).toBeGreaterThan(2)
  })

  it('the protected pod keeps serving what the vendor can serve', () => {
    expect(ours.goodput.overload).toBeGreaterThan(0.8 * CAPACITY)
    expect(ours.goodput.overload).toBeLessThanOrEqual(1.05 * CAPACITY)
    expect(ours.answerP99Ms).toBeLessThan(500)
  })

  it('the protected pod refuses the rest at once, and almost no request times out', () => {
    expect(ours.overload.refused).toBeGreaterThan(0.5)
    expect(ours.refusalP99Ms).toBeLessThan(5)
    expect(ours.overload['timed out']).toBeLessThan(0.01)
    expect(ours.overload.failed).toBeLessThan(0.01)
  })

  it('the protected pod is back to normal within a second', () => {
    expect(ours.recoveryMs).toBeLessThanOrEqual(1_000)
    expect(ours.goodput.after).toBeGreaterThan(0.85 * PHASES.after.offered)
  })

  it("the protected pod makes few repeated calls and stays within the vendor's concurrency", () => {
    expect(ours.callsPerRequest).toBeLessThanOrEqual(1.25)
    expect(ours.peakInFlight).toBeLessThanOrEqual(20)
    expect(naive.peakInFlight).toBeGreaterThan(200)
  })
})

it('the run is identical for the same seed and different for another', async () => {
  const first = await playFast(withSpillway, 7)
  expect(await playFast(withSpillway, 7)).toEqual(first)
  expect(await playFast(withSpillway, 8)).not.toEqual(first)
})
