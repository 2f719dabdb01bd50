/** Errors in the format of OpenAI. */
import type { Failure } from '../dialect.js'

export function failure(status: number, message = MESSAGES[status] ?? 'The server had an error.') {
  return {
    status,
    message,
    type: status === 429 ? 'requests' : status < 500 ? 'invalid_request_error' : 'server_error',
    code: status === 429 ? 'rate_limit_exceeded' : undefined,
  }
}

export function errorBody({ message, type, param, code }: Failure) {
  return { error: { message, type, param: param ?? null, code: code ?? null } }
}

export const unreadable: Failure = failure(400, 'We could not parse the JSON body of your request.')

export function missing(param: string): Failure {
  const message = `Missing required parameter: '${param}'.`
  return { ...failure(400, message), param, code: 'missing_required_parameter' }
}

const MESSAGES: Readonly<Record<number, string>> = {
  429: 'Rate limit reached for requests.',
  500: 'The server had an error while processing your request. Sorry about that!',
  503: 'The engine is currently overloaded, please try again later.',
}
