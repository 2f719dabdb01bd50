/** Derives the state of a request's key from the kind of error that the vendor answered. */
import type { KeyAnswer, VendorFailure } from 'spillway/internal'

export const ACCEPTED: KeyAnswer = { kind: 'accepted' }
export const UNKNOWN: KeyAnswer = { kind: 'unknown' }
const INVALID: KeyAnswer = { kind: 'invalid-key' }

/** `failure`: the classified error; undefined if it could not be classified. */
export function keyAnswerOf(status: number, failure: VendorFailure | undefined): KeyAnswer {
  if (status < 400) return ACCEPTED
  switch (failure?.kind) {
    case 'quota-exhausted':
      // The limit of one model pauses its lane. The key is valid for other models.
      if (failure.perModel === true) return ACCEPTED
      return { kind: 'quota-exhausted', resetMs: failure.retryAfterMs }
    case 'invalid-key':
      return INVALID
    case 'overloaded':
    case 'server':
    case undefined:
      return UNKNOWN
    default:
      // A key without permission for one resource may be fine for others.
      return status === 403 ? UNKNOWN : ACCEPTED
  }
}

/** The vendor did not process the request, because of its key. */
export function rejectsKey({ kind }: KeyAnswer): boolean {
  return kind === 'quota-exhausted' || kind === 'invalid-key'
}
