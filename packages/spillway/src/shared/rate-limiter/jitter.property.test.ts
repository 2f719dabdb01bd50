import { describe, expect, it } from 'vitest'
import { usualOrLong } from '../../../test/long-run.js'
import type { Random } from '../../core/random.js'
import { createHarness } from '../../testing/harness.js'
import { sleep } from '../../testing/index.js'
import { createVendor } from '../../testing/vendor.js'
import { createSharedRateLimiter } from './rate-limiter.js'

const RUN_MS = usualOrLong(30_000, 60_000)

/** Either almost nothing or nearly half of the 50 ms jitter of a one-second window. */
const extreme = (random: Random) => (random() < 0.5 ? 1 : 24)

describe('shared limit of 50 calls per second', () => {
  it.each(usualOrLong([1], [1, 2, 3]))(
    'limit of 50/s holds at the vendor however late permits and calls are: seed %i',
    async (seed) => {
      const fleet = createHarness({
        seed,
        pods: 3,
        // Round trip time, so a permit is up to 24 ms old when it arrives.
        connection: { latencyMs: (random) => 2 * extreme(random) },
        create: ({ name: pod, clock, store, random }) =>
          createSharedRateLimiter({
            name: 'vendor',
            pod,
            limits: [{ limit: 50, windowMs: 1_000 }],
            clock,
            store,
            random,
          }),
      })
      const { clock, random } = fleet
      const vendor = createVendor({ clock, random, serviceMs: 5, travelMs: extreme })
      let over = false
      const keepCalling = async ({ value: limiter }: (typeof fleet.pods)[number]) => {
        while (!over) {
          const answer = await limiter.acquireWithin('10s').catch(() => undefined)
          if (answer?.allowed) await vendor.call()
          else await sleep(clock, 5)
        }
      }
      for (const pod of fleet.pods) {
        pod.store.loseReplies(0.01)
        for (let caller = 0; caller < 20; caller++) void keepCalling(pod)
      }
      await fleet.run(RUN_MS)
      over = true
      expect(vendor.mostInAnyWindow(1_000)).toBeLessThanOrEqual(50)
      expect(vendor.arrivalCount).toBeGreaterThan(RUN_MS / 30)
    },
  )
})
