/** Result of a request to a lane's breaker: a permit, or the error to refuse with. */
import type { SpillwayError } from '../../../core/errors.js'
import type { BreakerPermit } from '../api.js'

export type BreakerEntry = BreakerPermit | SpillwayError

/** The generation of this permit never exists, so the outcome of its call changes nothing. */
export function uncountedPermit(lane: string): BreakerPermit {
  return { lane, generation: -1, probe: false, probeId: undefined }
}

export function isBreakerPermit(entry: object): entry is BreakerPermit
export function isBreakerPermit(entry: BreakerEntry): entry is BreakerPermit
export function isBreakerPermit(entry: object): entry is BreakerPermit {
  return 'generation' in entry
}
