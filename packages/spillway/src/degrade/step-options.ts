/** What every fallback can be told. */
import { arrayOf, oneOf, optional, text } from '../core/options/checks.js'
import { type DegradedReason, REASONS } from '../guard/stages/fallback.js'

export interface StepOptions {
  /** Stands in results, events and metrics. Default: what it is. */
  name?: string
  /** Is asked for these reasons only. Default: for all. */
  on?: readonly DegradedReason[]
}

export const stepFields = {
  name: optional(text()),
  on: optional(arrayOf(oneOf(...REASONS))),
}
