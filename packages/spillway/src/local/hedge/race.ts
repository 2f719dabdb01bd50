/**
 * Two attempts at the same thing, of which the first good answer counts. One that failed waits for the
 * other; only when both have failed the first one's failure is what comes out. Knows nothing of what
 * attempts are: whoever runs them is told which one to break off.
 */
import { discardResult } from '../../core/discard.js'
import type { Verdict } from '../../core/outcome.js'

export type RaceEnd<T> = { value: T } | { error: unknown }

export interface RaceRunner<T> {
  /** This one counts. */
  onDecided(side: RaceSide<T>, end: RaceEnd<T>, verdict: Verdict): void
  /** Nobody waits for this one any more. */
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

  /** Somebody has joined, while the first was under way. */
  join(): RaceSide<T> {
    this.second = new RaceSide<T>(true)
    return this.second
  }

  /** Who had joined does not come after all. */
  leave(): void {
    this.second = undefined
  }

  ended(side: RaceSide<T>, end: RaceEnd<T>, verdict: Verdict): void {
    if (this.over) return this.#discard(end)
    side.end = end
    side.verdict = verdict
    const other = side === this.first ? this.second : this.first
    // What would fail again the same way is an answer, too.
    if (!verdict.retryable || other === undefined) return this.#decide(side, other)
    if (other.end !== undefined) this.#decide(this.first, this.second)
  }

  /** The caller aborted: neither attempt is needed, not even one that has ended already. */
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

  /** Releases a result that is not returned. Attempts may share one, as functions that deduplicate do. */
  #discard(end: RaceEnd<T>): void {
    const won = this.#winner?.end
    if (!('value' in end) || (won !== undefined && 'value' in won && won.value === end.value))
      return
    discardResult(end.value)
  }
}

/** What the one hears that was not needed: no failure of anybody. */
export class HedgeLostError extends Error {
  override readonly name = 'AbortError'
  readonly code = 'HEDGE_LOST'

  constructor() {
    super('the other attempt has answered')
  }
}
