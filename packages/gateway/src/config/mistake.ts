import type { OptionProblem } from 'spillway/options'

/** A problem, with where to point at if not at its value. */
export interface Mistake extends OptionProblem {
  /** `key`: at the name. `outside`: it is not in the file. A number: at this offset. */
  at?: 'key' | 'outside' | number
}
