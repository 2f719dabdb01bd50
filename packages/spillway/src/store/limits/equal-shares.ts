/**
 * Divides the free units of a limit between a pod that asks and pods that wait. All sums are parts of a limit.
 * Twin: `redis/lua/include/equal-shares.lua`.
 */

/** Another pod that claims a part of the free units. */
export interface Claim {
  /** Units it was granted so far. */
  got: number
  /** The most it claims of each limit; undefined: its equal share. */
  most: readonly number[] | undefined
}

/**
 * The part of a limit that a pod may get. Pods that were granted less come first, until they have as much as this one
 * or all that they claim. After that all get equal parts.
 */
export function shareOf(
  claims: readonly Claim[],
  limit: number,
  ownGot: number,
  free: number,
): number {
  let left = free - claimedBefore(claims, limit, ownGot)
  if (left <= 0) return 0
  // The sums at which another pod begins or stops to share with this one.
  const changes: { at: number; sharing: number }[] = []
  for (const { got, most } of claims) {
    const begins = Math.max(0, got - ownGot)
    const ends = most === undefined ? undefined : got - ownGot + (most[limit] as number)
    if (ends !== undefined && ends <= begins) continue
    changes.push({ at: begins, sharing: 1 })
    if (ends !== undefined) changes.push({ at: ends, sharing: -1 })
  }
  changes.sort((one, other) => one.at - other.at)
  let share = 0
  let sharing = 1
  for (const { at, sharing: change } of changes) {
    const step = (at - share) * sharing
    if (step > left) break
    left -= step
    share = at
    sharing += change
  }
  return share + Math.floor(left / sharing)
}

/** Units that the others may claim before a pod is granted `level` in total. */
export function claimedBefore(claims: readonly Claim[], limit: number, level: number): number {
  let sum = 0
  for (const { got, most } of claims) {
    const less = Math.max(0, level - got)
    sum += most === undefined ? less : Math.min(less, most[limit] as number)
  }
  return sum
}
