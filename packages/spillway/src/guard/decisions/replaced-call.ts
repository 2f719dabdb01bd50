/**
 * A call that was made in place of another one, such as the next target of a gateway's route. The log of decisions
 * links the two, and names the user although the first call was charged.
 */
import type { RunOptions } from '../run-options.js'

/** Internal option of the call that replaces another one. A symbol, so that it is none of the public options. */
export const REPLACES: unique symbol = Symbol.for('spillway.replaces')

/** How the call that was replaced ended. */
export interface ReplacedCall {
  readonly guard: string
  readonly lane: string | undefined
  /** Code of its decision. */
  readonly code: string
  /** HTTP status of the downstream's answer, if it has one. */
  readonly status: number | undefined
  /** Whose limits were charged. */
  readonly user: string | undefined
  readonly tier: string | undefined
}

export type ReplacingOptions = RunOptions & { readonly [REPLACES]?: ReplacedCall | undefined }
