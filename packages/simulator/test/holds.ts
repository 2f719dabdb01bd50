/** A scenario is worth its name if it holds with Spillway and does not without, whatever the seed. */
import { SCENARIOS, simulate } from '@spillway/simulator'
import { describe, expect, it } from 'vitest'

// `npm run test:long` sets the variable.
const SEEDS = process.env.SPILLWAY_TEST_LONG === undefined ? [1] : [1, 2, 3, 4, 5, 6]

export function holds(...names: readonly string[]): void {
  describe.each(names)('%s', (name) => {
    const scenario = SCENARIOS.find((each) => each.name === name)!

    it.each(SEEDS)(
      'keeps its promises with Spillway and breaks some without, seed %i',
      async (seed) => {
        const { checks, naiveFails } = await simulate(scenario, { seed })
        const broken = checks.filter(({ spillway }) => !spillway.holds)
        expect(broken).toEqual([])
        expect(naiveFails).toBe(true)
      },
    )
  })
}
