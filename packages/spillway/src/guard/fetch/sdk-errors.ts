/**
 * Converts errors that end a streamed answer into errors of the SDK that reads it. SDKs wrap errors of `fetch`
 * themselves, but pass on errors of a body unchanged, where their users expect the SDK's own errors.
 */

import { SpillwayError } from '../../core/errors.js'
import type { Check } from '../../core/options/checks.js'
import { described } from '../../core/options/schema.js'

/** Error classes that the SDKs of OpenAI and Anthropic, and others generated in the same way, have. */
export interface SdkErrors {
  APIConnectionError: new (about: { message?: string; cause?: Error }) => Error
  APIConnectionTimeoutError: new (about: { message?: string }) => Error
}

const NAMES = ['APIConnectionError', 'APIConnectionTimeoutError'] as const

function missingIn(value: unknown): string[] {
  const sdk = Object(value) as Record<string, unknown>
  return NAMES.filter((name) => typeof sdk[name] !== 'function')
}

export function isSdkErrors(value: unknown): value is SdkErrors {
  return missingIn(value).length === 0
}

const checkSdk: Check<SdkErrors> = (value, path, problems) => {
  const missing = missingIn(value)
  if (missing.length > 0) {
    const message = `must be an SDK such as OpenAI or Anthropic, has no ${missing.join(' nor ')}`
    problems.push({ path, message })
  }
  return value as SdkErrors
}

/** A class cannot be written in a configuration file, so there is no schema. */
export const readSdk = described(checkSdk, undefined)

/** Converts refusals of Spillway. Errors of the network and aborts by the caller stay as they are. */
export function toSdkError(sdk: SdkErrors, error: unknown): unknown {
  if (!(error instanceof SpillwayError)) return error
  const { code, message } = error
  try {
    const converted =
      code === 'CALL_TIMEOUT' || code === 'DEADLINE_EXCEEDED'
        ? new sdk.APIConnectionTimeoutError({ message })
        : new sdk.APIConnectionError({ message, cause: error })
    // The timeout errors of the SDKs accept no cause.
    converted.cause = error
    return converted
  } catch {
    return error
  }
}
