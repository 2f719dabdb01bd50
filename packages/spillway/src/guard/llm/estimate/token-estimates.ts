/** Estimates of all lanes of a guard. */
import { BoundedCache } from '../../../core/collections/bounded-cache.js'
import type { Clock } from '../../../core/time/clock.js'
import type { TokenUsage } from '../usage/token-usage.js'
import { CachedPrefixes } from './cached-prefixes.js'
import { LaneEstimates } from './lane-estimates.js'
import type { Prompt } from './prompt-estimate.js'

/** Callers may choose the names of lanes. */
const MOST_LANES = 1_000

export class TokenEstimates {
  readonly #prefixes: CachedPrefixes
  readonly #lanes = new BoundedCache<string, LaneEstimates>(MOST_LANES)

  constructor(clock: Pick<Clock, 'now'>) {
    this.#prefixes = new CachedPrefixes(clock)
  }

  /** A lane without answers is not remembered. */
  of(lane: string): LaneEstimates {
    return this.#lanes.get(lane) ?? new LaneEstimates(lane, this.#prefixes)
  }

  learn(
    lane: string,
    usage: TokenUsage,
    request: { prompt: Prompt | undefined; answers: number },
    sentMs: number,
  ): void {
    const estimates = this.of(lane)
    this.#lanes.set(lane, estimates)
    estimates.learn(usage, request, sentMs)
  }
}
