/** Errors in the format of Anthropic. */
import type { Failure } from '../dialect.js'

export function failure(
  status: number,
  message = MESSAGES[status] ?? 'Internal server error',
): Failure {
  const type = TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error')
  return { status, message, type }
}

export function invalid(message: string): Failure {
  return failure(400, message)
}

export function errorBody({ type, message }: Failure, requestId: string) {
  return { type: 'error', error: { type, message }, request_id: requestId }
}

const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

const MESSAGES: Readonly<Record<number, string>> = {
  429: "This request would exceed your account's rate limit. Please try again later.",
  529: 'Overloaded',
}
