/**
 * What breaks off an answer, in the words of the SDK that reads it. SDKs wrap what a fetch fails with;
 * what a body fails with they pass on as it is, and their users look for the SDK's own errors there, too.
 */

import { SpillwayError } from '../../core/errors.js'
import type { Check } from '../../core/options/checks.js'
import { described } from '../../core/options/schema.js'

/** As those of OpenAI, Anthropic, and of all that are generated the same way have them. */
export interface SdkErrors {
  APIConnectionError: new (about: { message?: string; cause?: Error }) => Error
  APIConnectionTimeoutError: new (about: { message?: string }) => Error
}

const NAMES = ['APIConnectionError', 'APIConnectionTimeoutError'] as const

const checkSdk: Check<SdkErrors> = (value, path, problems) => {
  const sdk = Object(value) as Record<string, unknown>
  const missing = NAMES.filter((name) => typeof sdk[name] !== 'function')
  if (missing.length > 0) {
    const message = `must be an SDK such as OpenAI or Anthropic, has no ${missing.join(' nor ')}`
    problems.push({ path, message })
  }
  return value as SdkErrors
}

/** No file can have it. */
export const readSdk = described(checkSdk, undefined)

/** Only what Spillway decided; what the network did or the caller wanted is as without a guard. */
export function inWordsOf(sdk: SdkErrors, error: unknown): unknown {
  if (!(error instanceof SpillwayError)) return error
  const { code, message } = error
  try {
    const told =
      code === 'CALL_TIMEOUT' || code === 'DEADLINE_EXCEEDED'
        ? new sdk.APIConnectionTimeoutError({ message })
        : new sdk.APIConnectionError({ message, cause: error })
    // Of a timeout the SDKs know no cause.
    told.cause = error
    return told
  } catch {
    return error
  }
}
