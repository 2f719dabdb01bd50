/** Lanes of one pool on the memory store, in virtual time. `twin-claims/limits.ts` runs the same property in Lua. */
import { describe, expect, it } from 'vitest'
import { memoryStore } from '../src/store/memory/memory-store.js'
import { createVirtualClock } from '../src/testing/virtual-clock.js'
import { fc } from './fast-check.js'
import { usualOrLong } from './long-run.js'
import { poolHistories, replayPool, START_US } from './pool-histories.js'

describe('a pool of three lanes on the memory store', () => {
  it('grants no window more than the limits of the pool, of each lane and of the vendor', async () => {
    const total = { granted: 0, refused: 0 }
    const runs = usualOrLong(60, 3_000)
    await fc.assert(
      fc.asyncProperty(poolHistories, async (history) => {
        const clock = createVirtualClock()
        const { limits } = memoryStore({ clock })
        let lastUs = START_US
        const { granted, refused } = await replayPool(limits, 'g', history, async (us) => {
          await clock.advance((us - lastUs) / 1_000)
          lastUs = us
        })
        total.granted += granted
        total.refused += refused
      }),
      { numRuns: runs },
    )
    expect(Math.min(total.granted, total.refused)).toBeGreaterThan(10 * runs)
  })
})
