/** Limits per calendar day on the memory store. `twin-claims/limits.ts` runs the same property in Lua. */
import { describe, expect, it } from 'vitest'
import { memoryStore } from '../src/store/memory/memory-store.js'
import { createVirtualClock } from '../src/testing/virtual-clock.js'
import { dayHistories, replayDays } from './day-histories.js'
import { fc } from './fast-check.js'
import { usualOrLong } from './long-run.js'

describe('a limit per calendar day on the memory store', () => {
  it('grants no calendar day of its time zone more than the limit, also when clocks change', async () => {
    const total = { granted: 0, refused: 0, days: 0 }
    const runs = usualOrLong(20, 3_000)
    await fc.assert(
      fc.asyncProperty(dayHistories, async (history) => {
        const startMs = Date.parse(`${history.start}T00:00:00Z`)
        const clock = createVirtualClock({ wallMs: startMs })
        const { limits } = memoryStore({ clock })
        const counts = await replayDays(limits, history, async (us) => {
          await clock.advance(us / 1_000 - clock.wallMs())
        })
        for (const name of ['granted', 'refused', 'days'] as const) total[name] += counts[name]
      }),
      { numRuns: runs },
    )
    expect(Math.min(total.granted, total.refused)).toBeGreaterThan(2 * runs)
    expect(total.days).toBeGreaterThan(4 * runs)
  })
})
