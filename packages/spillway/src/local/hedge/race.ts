/**
 * Two attempts of one call, of which the first good answer counts. If one fails, the other decides.
 * If both fail, the failure of the first attempt is the result. This class does not run attempts:
 * its owner is notified which one to abort.
 */
import { discardResult } from '../../core/discard.js'
import type { Verdict } from '../../core/outcome.js'

export type RaceEnd<T> = { value: T } | { error: unknown }

export interface RaceRunner<T> {
  /** The result of this attempt is the result of the call. */
  onDecided(side: RaceSide<T>, end: RaceEnd<T>, verdict: Verdict): void
  /** This attempt is no longer needed. */
  breakOff(side: RaceSide<T>): void
}

/** One of the attempts. */
export class RaceSide<T> {
  readonly hedge: boolean
  end: RaceEnd<T> | undefined
  verdict: Verdict | undefined

  constructor(hedge: boolean) {
    this.hedge = hedge
  }
}

export class Race<T> {
  readonly #runner: RaceRunner<T>
  readonly first = new RaceSide<T>(false)
  second: RaceSide<T> | undefined
  over = false
  #winner: RaceSide<T> | undefined

  constructor(runner: RaceRunner<T>) {
    this.#runner = runner
  }

  /** A second attempt begins while the first is running. */
  join(): RaceSide<T> {
    this.second = new RaceSide<T>(true)
    return this.second
  }

  /** The second attempt was not started after all. */
  leave(): void {
    this.second = undefined
  }

  ended(side: RaceSide<T>, end: RaceEnd<T>, verdict: Verdict): void {
    if (this.over) return this.#discard(end)
    side.end = end
    side.verdict = verdict
    const other = side === this.first ? this.second : this.first
    // A failure that would recur is a final answer as well.
    if (!verdict.retryable || other === undefined) return this.#decide(side, other)
    if (other.end !== undefined) this.#decide(this.first, this.second)
  }

  /** The result of the other attempt is the result of the call. */
  hasLost(side: RaceSide<T>): boolean {
    return this.#winner !== undefined && this.#winner !== side
  }

  /** The caller aborted, so neither attempt is needed, not even one that has ended. */
  abandon(): void {
    this.over = true
    for (const side of [this.first, this.second]) {
      if (side?.end !== undefined) this.#discard(side.end)
    }
  }

  #decide(winner: RaceSide<T>, loser: RaceSide<T> | undefined): void {
    this.over = true
    this.#winner = winner
    if (loser !== undefined) {
      if (loser.end === undefined) this.#runner.breakOff(loser)
      else this.#discard(loser.end)
    }
    this.#runner.onDecided(winner, winner.end as RaceEnd<T>, winner.verdict as Verdict)
  }

  /** Releases a result that is not returned. Both attempts may return the same object. */
  #discard(end: RaceEnd<T>): void {
    const won = this.#winner?.end
    if (!('value' in end) || (won !== undefined && 'value' in won && won.value === end.value))
      return
    discardResult(end.value)
  }
}

/** The abort reason of the attempt that lost. It does not count as a failure. */
export class HedgeLostError extends Error {
  override readonly name = 'AbortError'
  readonly code = 'HEDGE_LOST'

  constructor() {
    super('the other attempt has answered')
  }
}
