/** Options that every fallback has. */
import { arrayOf, oneOf, optional, text } from '../core/options/checks.js'
import { type DegradedReason, REASONS } from '../guard/stages/fallback.js'

/** Options that every fallback has. */
export interface StepOptions {
  /** Name in results, events and metrics. Default: the kind of fallback. */
  name?: string
  /** The reasons for which it is used. Default: all. */
  on?: readonly DegradedReason[]
}

export const stepFields = {
  name: optional(text()),
  on: optional(arrayOf(oneOf(...REASONS))),
}
