/** A refusal as an HTTP response: its body, and the headers that say whether and when to retry. */
import type { SpillwayError } from './errors.js'

export function refusalBody({ code, message, stage }: SpillwayError): string {
  return JSON.stringify({ error: { type: 'spillway', code, message, stage } })
}

/** The message of a guard's refusal that an SDK shows as if the vendor had sent it. */
export function guardMessage({ message, details: { name } }: SpillwayError): string {
  const isNamed = name === undefined || message.startsWith(`${name}:`)
  return `Spillway guard ${isNamed ? message : `${name}: ${message}`}`
}

/** The fields of an error that decide its headers. */
export type RetryAdvice = Pick<SpillwayError, 'retryAfterMs'> & { readonly code: string }

/** For clients of a pod that shuts down: another pod, or its replacement, can answer. */
const OTHER_POD_WAIT_MS = 1_000
/** SDKs ignore a longer `Retry-After` and retry after their own, much shorter delay. */
const LONGEST_OBEYED_MS = 60_000

/**
 * `retry-after` and `retry-after-ms` if the time is known, and `x-should-retry: false` if no automatic retry of an
 * SDK can succeed: the caller's deadline has passed, or the wait is longer than SDKs wait.
 */
export function refusalHeaders(refusal: RetryAdvice): Record<string, string> {
  const { code, retryAfterMs = code === 'SHUTTING_DOWN' ? OTHER_POD_WAIT_MS : undefined } = refusal
  const headers: Record<string, string> = {}
  const isKnown = retryAfterMs !== undefined && Number.isFinite(retryAfterMs)
  if (isKnown) {
    headers['retry-after'] = retryAfterSeconds(retryAfterMs)
    headers['retry-after-ms'] = retryAfterMilliseconds(retryAfterMs)
  }
  if (code === 'DEADLINE_EXCEEDED' || (isKnown && retryAfterMs > LONGEST_OBEYED_MS)) {
    headers['x-should-retry'] = 'false'
  }
  return headers
}

/** Whole seconds, as HTTP requires. At least 1, because 0 invites the client to retry at once. */
function retryAfterSeconds(retryAfterMs: number): string {
  return String(Math.max(1, Math.ceil(retryAfterMs / 1_000)))
}

/** For `retry-after-ms`, which some clients read. At least 1, for the same reason. */
function retryAfterMilliseconds(retryAfterMs: number): string {
  return String(Math.max(1, Math.ceil(retryAfterMs)))
}
