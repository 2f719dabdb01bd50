/** A useful scenario holds with Spillway and fails without, for any seed. */
import { SCENARIOS, type Scenario, simulate } from '@spillway/simulator'
import { expect, it } from 'vitest'
import { usualOrLong } from '../../spillway/test/long-run.js'

const SEEDS = usualOrLong([1], [1, 2, 3, 4, 5, 6])
/** Each check has enough time left for its measurement. */
const SHORTER: Record<string, Scenario['durationMs']> = usualOrLong(
  { 'one-key': '150s', outage: '22s', scale: '80s', 'store-loss': '100s', throttled: '60s' },
  {},
)

export function holds(...names: readonly string[]): void {
  const runs = names.flatMap((name) => SEEDS.map((seed) => [name, seed] as const))
  it.each(runs)(
    'scenario %s holds with Spillway and fails without, seed %i',
    async (name, seed) => {
      const scenario = SCENARIOS.find((each) => each.name === name)!
      const durationMs = SHORTER[name] ?? scenario.durationMs
      const { checks, naiveFails } = await simulate({ ...scenario, durationMs }, { seed })
      const broken = checks.filter(({ spillway }) => !spillway.holds)
      expect(broken).toEqual([])
      expect(naiveFails).toBe(true)
    },
  )
}
