/** What the breaker of a lane returns to a call that wants to begin: a permit, or the error to refuse with. */
import type { InFlightCall } from '../../../core/collections/in-flight.js'
import type { SpillwayError } from '../../../core/errors.js'
import type { BreakerPermit } from '../api.js'
import type { HedgedPair } from './lane-traffic.js'

export type BreakerEntry = BreakerPermit | SpillwayError

/** The permit of a call that is no probe. It is also the lane's record of the call while that is in flight. */
export class CallPermit implements BreakerPermit, InFlightCall {
  readonly lane: string
  readonly generation: number
  readonly probe = false
  readonly probeId = undefined
  batch: InFlightCall['batch'] = undefined
  startBatch: InFlightCall['startBatch'] = undefined
  /** A retry, or one of two hedged attempts: not counted in the rates. */
  repeated = false
  /** Set while another attempt of the same call runs beside it. */
  pair: HedgedPair | undefined = undefined

  constructor(lane: string, generation: number) {
    this.lane = lane
    this.generation = generation
  }
}

/** The generation of this permit never exists, so the outcome of its call changes nothing. */
export function uncountedPermit(lane: string): BreakerPermit {
  return { lane, generation: -1, probe: false, probeId: undefined }
}

export function isBreakerPermit(entry: object): entry is BreakerPermit
export function isBreakerPermit(entry: BreakerEntry): entry is BreakerPermit
export function isBreakerPermit(entry: object): entry is BreakerPermit {
  return 'generation' in entry
}
