/** A refusal as an HTTP response: its body and its Retry-After headers. */
import type { SpillwayError } from './errors.js'

export function refusalBody({ code, message, stage }: SpillwayError): string {
  return JSON.stringify({ error: { type: 'spillway', code, message, stage } })
}

/** Whole seconds, as HTTP requires. At least 1, because 0 invites the client to retry at once. */
export function retryAfterSeconds(retryAfterMs: number): string {
  return String(Math.max(1, Math.ceil(retryAfterMs / 1_000)))
}

/** For `retry-after-ms`, which some clients read. */
export function retryAfterMilliseconds(retryAfterMs: number): string {
  return String(Math.ceil(retryAfterMs))
}
