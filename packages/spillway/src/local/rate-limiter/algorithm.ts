/**
 * How a limiter counts. Times are milliseconds of one clock that does not run backwards; a cost is
 * a positive integer up to `capacity`.
 */
export interface Algorithm {
  /** The largest cost that can ever be granted. */
  readonly capacity: number
  /**
   * Takes `cost` if it fits now. `sinceMs` says since when the caller has been waiting for it, which
   * a pacing algorithm needs to know to keep its beat.
   */
  tryTake(nowMs: number, cost: number, sinceMs?: number): boolean
  /**
   * Milliseconds until `cost` fits, if `ahead` is granted first. Zero: now. Exact while both
   * together fit into the capacity, otherwise never too long.
   */
  waitMs(nowMs: number, cost: number, ahead: number): number
  /** Units that could be taken now. */
  remaining(nowMs: number): number
}
