/** Decides when a worker that ended is replaced, and when replacing it is pointless. */

/** A worker that served for this long was not part of a crash loop. */
const STABLE_MS = 10_000
const FIRST_DELAY_MS = 100
const MAX_DELAY_MS = 10_000
/** This many times every worker may end early before the supervisor gives up. */
const MAX_ROUNDS = 6

export class RestartPolicy {
  readonly #workers: number
  /** Workers that ended early, since the last one that did not. */
  #earlyEnds = 0

  constructor(workers: number) {
    this.#workers = workers
  }

  /** Counts the end of a worker. `servedMs`: time since it became ready; undefined if it never did. */
  ended(servedMs: number | undefined): void {
    this.#earlyEnds = servedMs !== undefined && servedMs >= STABLE_MS ? 0 : this.#earlyEnds + 1
  }

  /** Time until the replacement starts. None after the first early end of each worker. */
  get delayMs(): number {
    const round = Math.ceil(this.#earlyEnds / this.#workers)
    return round <= 1 ? 0 : Math.min(FIRST_DELAY_MS * 2 ** (round - 2), MAX_DELAY_MS)
  }

  /** Whether all workers end early, again and again. */
  get isCrashLoop(): boolean {
    return this.#earlyEnds >= this.#workers * MAX_ROUNDS
  }

  get earlyEnds(): number {
    return this.#earlyEnds
  }
}
