/** A duration in a scenario: a constant, or a distribution from which each value is drawn. */
import type { Duration } from 'spillway'
import { type Check, duration, either, object } from 'spillway/options'
import type { Random } from 'spillway/testing'

/**
 * A duration: constant, drawn evenly between `min` and `max`, or with the long tail of most services (`median`,
 * `p99`). Range: from 0 ms.
 */
export type Spread =
  | Duration
  | { min: Duration; max: Duration }
  | { median: Duration; p99: Duration }

export type CheckedSpread = number | { min: number; max: number } | { median: number; p99: number }

const ms = duration({ min: 0 })

const readObject: Check<CheckedSpread> = (value, path, problems) => {
  const isTail = typeof value === 'object' && value !== null && 'median' in value
  if (isTail) return object({ median: duration({ min: 0.001 }), p99: ms })(value, path, problems)
  return object({ min: ms, max: ms })(value, path, problems)
}

export const readSpread: Check<CheckedSpread> = either(ms, readObject)

/** Draws from the standard normal distribution. */
const Z99 = 2.326_347_874

export function drawFrom(spread: CheckedSpread): number | ((random: Random) => number) {
  if (typeof spread === 'number') return spread
  if ('min' in spread) {
    const { min, max } = spread
    return (random) => min + (max - min) * random()
  }
  const sigma = Math.log(spread.p99 / spread.median) / Z99
  return (random) => spread.median * Math.exp(sigma * normal(random))
}

export function meanOf(spread: CheckedSpread): number {
  if (typeof spread === 'number') return spread
  if ('min' in spread) return (spread.min + spread.max) / 2
  const sigma = Math.log(spread.p99 / spread.median) / Z99
  return spread.median * Math.exp(sigma ** 2 / 2)
}

/** Box–Muller transform. */
function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
}
