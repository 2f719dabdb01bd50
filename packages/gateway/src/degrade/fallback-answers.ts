/** The fallbacks of one route that need no vendor: the last good answer to the same request, and static answers. */
import { isDeepStrictEqual } from 'node:util'
import type { Clock } from 'spillway'
import type { FallbackAnswerConfig } from '../config/config.js'
import { CachedAnswers } from './cached-answers.js'

export class FallbackAnswers {
  /** In the order in which they are tried. */
  readonly steps: readonly FallbackAnswerConfig[]
  readonly cached: CachedAnswers | undefined

  /**
   * `before`: the fallbacks of this route in the previous configuration. Cached answers are kept if their options are
   * equal.
   */
  constructor(steps: readonly FallbackAnswerConfig[], clock: Clock, before?: FallbackAnswers) {
    this.steps = steps
    const config = steps.find((step) => step.kind === 'cached')
    const known = before?.cached
    if (config === undefined) return
    const isSame = isDeepStrictEqual(known?.config, config)
    this.cached = isSame ? known : new CachedAnswers(config, clock)
  }
}
