/**
 * Calls to a vendor that takes twenty times as long for 2 % of the calls, with and without hedging. Virtual time and
 * a seeded random source: the figures describe the policy, not the speed of the code.
 */
import { createSpillway, type GuardOptions } from 'spillway'
import { createRandom, createVendor, createVirtualClock } from 'spillway/testing'

const CALLS = 5_000
const CALLS_A_SECOND = 200
const NORMAL_MS = 50
const SLOW_SHARE = 0.02
const SLOW_FACTOR = 20

interface Tail {
  p99Ms: number
  /** Requests to the vendor beyond one per call, as a fraction of the calls. */
  extra: number
}

export async function measureTail(hedge: GuardOptions['hedge'], seed: number): Promise<Tail> {
  const clock = createVirtualClock()
  const random = createRandom(seed)
  const vendor = createVendor({
    clock,
    random,
    serviceMs: (draw) => {
      const normalMs = NORMAL_MS * (0.8 + 0.4 * draw())
      return draw() < SLOW_SHARE ? normalMs * SLOW_FACTOR : normalMs
    },
  })
  const spillway = createSpillway({ clock, random: createRandom(seed + 1) })
  const guard = spillway.guard('vendor', {
    concurrency: { limit: 200 },
    ...(hedge !== undefined && { hedge }),
  })
  const tookMs: number[] = []
  const call = async () => {
    const startMs = clock.now()
    await guard.run(({ signal }) => vendor.call({ signal }))
    tookMs.push(clock.now() - startMs)
  }
  const calls: Promise<void>[] = []
  for (let number = 0; number < CALLS; number++) {
    calls.push(call())
    await clock.advance(1_000 / CALLS_A_SECOND)
  }
  await clock.until(Promise.all(calls))
  await clock.until(spillway.close())
  tookMs.sort((a, b) => a - b)
  return { p99Ms: tookMs[Math.floor(CALLS * 0.99)]!, extra: vendor.arrivalCount / CALLS - 1 }
}
