/** Durations counted in buckets. */

/** Upper bounds of the buckets, in seconds. */
export const SECONDS: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300,
]

/** Durations, counted in buckets. */
export class Durations {
  /** One count for each bound, and one for longer durations. */
  readonly counts: number[] = new Array<number>(SECONDS.length + 1).fill(0)
  /** In seconds. */
  sum = 0

  /** Counts one duration. */
  add(seconds: number): void {
    this.sum += seconds
    let bucket = 0
    while (bucket < SECONDS.length && seconds > (SECONDS[bucket] as number)) bucket++
    ;(this.counts[bucket] as number)++
  }
}
