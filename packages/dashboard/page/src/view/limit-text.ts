/** Texts for remaining units; unknown while the store is unreachable. */
import type { LaneTick, LimitTick } from '../wire'
import type { Tone } from './elements'

/** The part that is left; undefined if it is unknown. */
export function leftOf({ limit, remaining }: LimitTick): number | undefined {
  if (remaining === undefined) return undefined
  return limit > 0 ? Math.min(1, remaining / limit) : 0
}

/** The limit with the smallest remaining part, and that part. */
export function tightestOf(
  lanes: readonly LaneTick[],
): { limit: LimitTick; left: number } | undefined {
  let tightest: { limit: LimitTick; left: number } | undefined
  for (const { limits } of lanes) {
    for (const limit of limits) {
      const left = leftOf(limit)
      if (left !== undefined && left < (tightest?.left ?? 2)) tightest = { limit, left }
    }
  }
  return tightest
}

export function leftTone(left: number): Tone {
  return left < 0.1 ? 'refused' : left < 0.3 ? 'warn' : 'good'
}
