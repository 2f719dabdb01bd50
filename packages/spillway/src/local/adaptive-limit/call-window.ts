/**
 * The calls that ended since the last decision on a limit: how long they typically took, how many ran
 * at once, how many the downstream refused. About one round of all slots, so that a decision sees what
 * the last one has done.
 */
const FEWEST = 10
const MOST = 256
/** Of those sorted by time, the longest are left out: a few stragglers say nothing about the load. */
const TYPICAL_SHARE = 0.9

export class CallWindow {
  count = 0
  dropped = 0
  mostInFlight = 0
  #timed = 0
  readonly #latencies = new Float64Array(MOST)

  add(latencyMs: number, inFlight: number): void {
    this.#latencies[this.#timed++] = latencyMs
    this.#note(inFlight)
  }

  drop(inFlight: number): void {
    this.dropped++
    this.#note(inFlight)
  }

  /** Enough calls to decide on a limit of this size. */
  isFull(limit: number): boolean {
    return this.count >= Math.min(MOST, Math.max(FEWEST, limit))
  }

  /** Part of the calls that were refused. */
  get dropShare(): number {
    return this.dropped / this.count
  }

  /** The mean without the longest; zero without calls. */
  typicalMs(): number {
    const sorted = this.#latencies.subarray(0, this.#timed).sort()
    const counted = Math.ceil(this.#timed * TYPICAL_SHARE)
    let sum = 0
    for (let index = 0; index < counted; index++) sum += sorted[index] as number
    return counted === 0 ? 0 : sum / counted
  }

  clear(): void {
    this.count = 0
    this.dropped = 0
    this.mostInFlight = 0
    this.#timed = 0
  }

  #note(inFlight: number): void {
    this.count++
    if (inFlight > this.mostInFlight) this.mostInFlight = inFlight
  }
}
