/** A scenario is useful if it holds with Spillway and fails without, whatever the seed. */
import { SCENARIOS, simulate } from '@spillway/simulator'
import { expect, it } from 'vitest'
import { usualOrLong } from '../../spillway/test/long-run.js'

const SEEDS = usualOrLong([1], [1, 2, 3, 4, 5, 6])

export function holds(...names: readonly string[]): void {
  const runs = names.flatMap((name) => SEEDS.map((seed) => [name, seed] as const))
  it.each(runs)(
    'scenario %s holds with Spillway and fails without, seed %i',
    async (name, seed) => {
      const scenario = SCENARIOS.find((each) => each.name === name)!
      const { checks, naiveFails } = await simulate(scenario, { seed })
      const broken = checks.filter(({ spillway }) => !spillway.holds)
      expect(broken).toEqual([])
      expect(naiveFails).toBe(true)
    },
  )
}
