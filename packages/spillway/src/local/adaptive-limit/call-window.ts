/**
 * The calls that ended since the last decision on a limit: their typical latency, how many ran at
 * once, how many the downstream refused. Holds about one round of all slots, so that each decision
 * sees the effect of the last one.
 */
const FEWEST = 30
const MOST = 256
/** Longer latencies count as this multiple of the median, because a few slow calls do not indicate load. */
const LONGEST = 3

export interface Typical {
  /** The mean with slow calls capped; 0 without calls. */
  ms: number
  /** Its standard error. */
  errorMs: number
}

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

  /** Whether there are enough calls to decide on a limit of this size. */
  isFull(limit: number): boolean {
    return this.count >= Math.min(MOST, Math.max(FEWEST, limit))
  }

  /** Share of the calls that were refused. */
  get dropShare(): number {
    return this.dropped / this.count
  }

  typical(): Typical {
    const count = this.#timed
    if (count === 0) return { ms: 0, errorMs: 0 }
    const sorted = this.#latencies.subarray(0, count).sort()
    const longest = (sorted[count >> 1] as number) * LONGEST
    let sum = 0
    let squares = 0
    for (const each of sorted) {
      const counted = Math.min(each, longest)
      sum += counted
      squares += counted * counted
    }
    const ms = sum / count
    return { ms, errorMs: Math.sqrt(Math.max(0, squares / count - ms * ms) / count) }
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
