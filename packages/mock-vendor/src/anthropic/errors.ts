/** Errors in the format of Anthropic. */
import type { Failure } from '../dialect.js'
import type { ErrorKind } from '../error-kinds.js'

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

export const failures: Readonly<Record<ErrorKind, Failure>> = {
  'rate-limited': failure(429),
  'quota-exhausted': invalid(
    'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase ' +
      'credits.',
  ),
  'invalid-key': failure(401, 'invalid x-api-key'),
  'context-window': invalid('prompt is too long: 210000 tokens > 200000 maximum'),
  'content-filter': invalid('Output blocked by content filtering policy'),
  overloaded: failure(529),
  'bad-request': invalid('messages: at least one message is required'),
  server: failure(500),
}
