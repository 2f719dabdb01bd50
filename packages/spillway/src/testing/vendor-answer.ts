/** The responses of a simulated vendor. Small, because there may be millions of them. */
import { limitStack } from '../core/errors.js'

/** The part of `Response` that is used. */
export interface VendorAnswer {
  /** HTTP status. */
  readonly status: number
  /** Whether the status is a success. */
  readonly ok: boolean
  /** Headers of the answer. */
  readonly headers: {
    /** Value of a header, or null. */ get(name: string): string | null
  }
}

/** What `answers: 'throw'` throws. */
export interface VendorError extends Error {
  /** HTTP status. */
  readonly status: number
  /** Headers of the answer. */
  readonly headers: Readonly<Record<string, string>>
}

/** For nearly all responses. */
const NO_HEADERS: VendorAnswer['headers'] = { get: () => null }

export function answerOf(
  status: number,
  headers: Record<string, string> | undefined,
): VendorAnswer {
  const ok = status < 400
  if (headers === undefined) return { status, ok, headers: NO_HEADERS }
  const get = (name: string) => headers[name.toLowerCase()] ?? null
  return { status, ok, headers: { get } }
}

export function errorOf(status: number, headers: Record<string, string> = {}): VendorError {
  // Created in large numbers, and their stack is useless.
  const limit = limitStack(0)
  const error = new Error(`the vendor answered ${status}`)
  limitStack(limit)
  return Object.assign(error, { status, headers })
}
