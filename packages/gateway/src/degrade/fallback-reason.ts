/**
 * Whether a fallback may answer in place of a failure, and why. The rules are those of a guard's fallbacks: they answer for
 * failures and refusals, and never in place of an answer such as 404.
 */
import { SpillwayError } from 'spillway'
import type { DegradedReason } from 'spillway/degrade'
import { retryAfterFromHeaders } from 'spillway/http'
import { reasonOfRefusal } from 'spillway/internal'
import { RequestError } from '../response/errors.js'
import type { SentAnswer } from '../vendor/sent-answer.js'

/** Why a fallback may answer in place of this error. Undefined: it may not. */
export function reasonOfError(error: unknown, attempts: number): DegradedReason | undefined {
  // The request is wrong, or the client has disconnected.
  if (error instanceof RequestError) return undefined
  if (error instanceof SpillwayError) {
    // The client should retry, so that another gateway can answer.
    return error.code === 'SHUTTING_DOWN' ? undefined : reasonOfRefusal(error.code)
  }
  // Before an attempt only the gateway itself can have failed, which must not be hidden.
  return attempts > 0 ? 'error' : undefined
}

/** Why a fallback may answer in place of a vendor's answer with this status. Undefined: it may not. */
export function reasonOfStatus(status: number): DegradedReason | undefined {
  if (status === 429) return 'limited'
  return status >= 500 ? 'error' : undefined
}

/**
 * When the client may retry, according to the error or the vendor's answer that the fallback replaces. `wallMs`: the date,
 * because a `Retry-After` may be a date.
 */
export function retryAfterMsOf(failure: unknown, wallMs: number): number | undefined {
  if (failure instanceof SpillwayError) return failure.retryAfterMs
  return retryAfterFromHeaders((failure as Partial<SentAnswer>).headers, wallMs)
}
