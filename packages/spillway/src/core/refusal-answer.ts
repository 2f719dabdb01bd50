/** A refusal as an HTTP answer: what its body says, and when to come back. */
import type { SpillwayError } from './errors.js'

export function refusalBody({ code, message, stage }: SpillwayError): string {
  return JSON.stringify({ error: { type: 'spillway', code, message, stage } })
}

/** Whole seconds, as HTTP has it; never none, which would be an invitation. */
export function retryAfterSeconds(retryAfterMs: number): string {
  return String(Math.max(1, Math.ceil(retryAfterMs / 1_000)))
}

/** For clients that know it. */
export function retryAfterMilliseconds(retryAfterMs: number): string {
  return String(Math.ceil(retryAfterMs))
}
