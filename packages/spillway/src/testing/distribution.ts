import { type Check, type Duration, duration, either, func } from '../core/options/checks.js'
import type { Random } from '../core/random.js'

/** A duration: constant, or drawn each time, in milliseconds. */
export type Distribution = Duration | ((random: Random) => number)

type Drawn = number | ((random: Random) => number)

export const readDistribution: Check<Drawn> = either(
  duration({ min: 0 }),
  func<(random: Random) => number>(),
)

/** Returns a function that draws from it. */
export function drawing(distribution: Drawn, random: Random): () => number {
  if (typeof distribution === 'number') return () => distribution
  return () => {
    const ms = distribution(random)
    if (!(ms >= 0))
      throw new RangeError(`a distribution must return a number of at least 0, got ${ms}`)
    return ms
  }
}
