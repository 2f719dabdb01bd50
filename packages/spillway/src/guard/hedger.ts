/** What all hedged calls of one guard have in common: when, from what budget, and how many. */

import { emit, listening } from '../core/events.js'
import type { Clock } from '../core/time/clock.js'
import { HedgeDelay } from '../local/hedge/hedge-delay.js'
import type { RetryBudget } from '../local/retry/retry-budget.js'
import type { CheckedGuard } from './options.js'

export interface HedgeCounts {
  /** When a second attempt would begin now; nothing: too little is known. */
  delayMs: number | undefined
  /** Second attempts, and those of them that counted. */
  made: number
  won: number
}

export class Hedger {
  readonly delay: HedgeDelay
  readonly #name: string
  readonly #clock: Clock
  readonly #options: NonNullable<CheckedGuard['hedge']>
  readonly #budget: RetryBudget
  #made = 0
  #won = 0

  constructor(
    name: string,
    options: NonNullable<CheckedGuard['hedge']>,
    budget: RetryBudget,
    clock: Clock,
  ) {
    this.#name = name
    this.#options = options
    this.#budget = budget
    this.#clock = clock
    this.delay = new HedgeDelay(options)
  }

  /** Where a second attempt goes. */
  laneFor(lane: string): string {
    return this.#options.lane ?? lane
  }

  /** A second attempt costs as much as a first retry. */
  pay(): boolean {
    return this.#budget.tryRetry(1)
  }

  /** There is none. */
  skip(because: 'budget' | 'busy'): undefined {
    if (listening()) emit({ type: 'hedge.skipped', name: this.#name, because })
    return undefined
  }

  begun(delayMs: number): void {
    this.#made++
    if (listening()) emit({ type: 'hedge.begun', name: this.#name, delayMs })
  }

  won(delayMs: number): void {
    this.#won++
    if (listening()) emit({ type: 'hedge.won', name: this.#name, delayMs })
  }

  counts(): HedgeCounts {
    return { delayMs: this.delay.delayMs(this.#clock.now()), made: this.#made, won: this.#won }
  }
}
