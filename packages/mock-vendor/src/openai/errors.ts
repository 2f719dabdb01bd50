/** Errors in the format of OpenAI. */
import type { Failure } from '../dialect.js'
import type { ErrorKind } from '../error-kinds.js'

const MESSAGES: Readonly<Record<number, string>> = {
  429: 'Rate limit reached for requests.',
  500: 'The server had an error while processing your request. Sorry about that!',
  503: 'The engine is currently overloaded, please try again later.',
}

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

export const failures: Readonly<Record<ErrorKind, Failure>> = {
  'rate-limited': failure(429),
  'quota-exhausted': {
    status: 429,
    message:
      'You exceeded your current quota, please check your plan and billing details. For more information on this ' +
      'error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.',
    type: 'insufficient_quota',
    code: 'insufficient_quota',
  },
  'invalid-key': {
    ...failure(
      401,
      'Incorrect API key provided: mock. You can find your API key at https://platform.openai.com/account/api-keys.',
    ),
    code: 'invalid_api_key',
  },
  'context-window': {
    ...failure(
      400,
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 140000 tokens. " +
        'Please reduce the length of the messages.',
    ),
    param: 'messages',
    code: 'context_length_exceeded',
  },
  'content-filter': {
    ...failure(
      400,
      'Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try again with a ' +
        'different prompt.',
    ),
    code: 'invalid_prompt',
  },
  overloaded: failure(503),
  'bad-request': failure(400, 'Invalid request.'),
  server: failure(500),
}

export const unreadable: Failure = failure(400, 'We could not parse the JSON body of your request.')

export function missing(param: string): Failure {
  const message = `Missing required parameter: '${param}'.`
  return { ...failure(400, message), param, code: 'missing_required_parameter' }
}
