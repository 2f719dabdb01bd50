/**
 * How a limiter counts. Times are milliseconds of one monotonic clock; a cost is a positive integer
 * up to `capacity`.
 */
export interface Algorithm {
  /** The largest cost that can be granted. */
  readonly capacity: number
  /**
   * Takes `cost` if it fits now. `sinceMs` is when the call began to wait, which a pacing algorithm
   * needs to keep its rhythm.
   */
  tryTake(nowMs: number, cost: number, sinceMs?: number): boolean
  /**
   * Milliseconds until `cost` fits if `ahead` is granted first; 0 means now. Exact while both
   * together fit into the capacity, otherwise never too long.
   */
  waitMs(nowMs: number, cost: number, ahead: number): number
  /** Units that can be taken now. */
  remaining(nowMs: number): number
}
