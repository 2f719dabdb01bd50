/** How long things took, by buckets: plain numbers, because everything is counted and hardly anybody asks. */

/** Upper ends, in seconds. */
export const SECONDS: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300,
]

export class Durations {
  /** One for each bound, and one beyond. */
  readonly counts: number[] = new Array<number>(SECONDS.length + 1).fill(0)
  /** In seconds. */
  sum = 0

  add(seconds: number): void {
    this.sum += seconds
    let bucket = 0
    while (bucket < SECONDS.length && seconds > (SECONDS[bucket] as number)) bucket++
    ;(this.counts[bucket] as number)++
  }
}
