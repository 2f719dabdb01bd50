/** Anthropic's messages API. */
import { FieldNames } from '../request/body/json-fields.js'
import { largestOf } from '../tokens/estimate.js'
import { bearer, type Complaint, type Protocol, pathMatches } from './protocol.js'

const MAX_TOKENS = ['max_tokens', 'max_tokens_to_sample'] as const

export const anthropic: Protocol = {
  name: 'anthropic',
  callerKey(headers) {
    const key = headers['x-api-key']
    return typeof key === 'string' ? key : bearer(headers)
  },
  vendorKey: (secret) => ['x-api-key', secret],
  format: {
    bodyOn(path) {
      if (pathMatches(path, GENERATING)) return 'json'
      return pathMatches(path, STORING) ? 'file' : 'any'
    },
    isFree: (path) => pathMatches(path, FREE),
    fields: new FieldNames(
      ['model', 'stream', ...MAX_TOKENS],
      ['system', 'messages', 'tools', 'prompt'],
    ),
    read(values, promptTokens) {
      return {
        model: values.get('model') as string | undefined,
        streamed: values.get('stream') === true,
        promptTokens,
        maxTokens: largestOf(values, MAX_TOKENS),
        answers: 1,
      }
    },
  },
  // A stream of Anthropic's says what it cost without being asked.
  hidesUsage: () => false,
  isUsageEvent: () => false,
  isCutOff: (end) => GOING_ON.test(end) && !LAST_WORD.test(end),
  errorType: 'application/json',
  errorBody: (complaint) => JSON.stringify(errorOf(complaint)),
  errorEvent: (complaint) => `event: error\ndata: ${JSON.stringify(errorOf(complaint))}\n\n`,
  repeatable: (path) => /\/messages(\/count_tokens)?$/.test(path),
}

const GENERATING = /\/(messages|messages\/count_tokens|complete)$/
const FREE = /\/messages\/count_tokens$/
const STORING = /\/(files|skills|skills\/[^/]+\/versions)$/

const GOING_ON = /"type"\s*:\s*"(message_start|content_block_\w+|message_delta)"/
const LAST_WORD = /"type"\s*:\s*"(message_stop|error)"/

function errorOf({ status, code, message, requestId }: Complaint): object {
  return { type: 'error', error: { type: typeOf(status), message, code }, request_id: requestId }
}

function typeOf(status: number): string {
  if (status === 401) return 'authentication_error'
  if (status === 404) return 'not_found_error'
  if (status === 413) return 'request_too_large'
  if (status === 429) return 'rate_limit_error'
  if (status === 504) return 'timeout_error'
  if (status === 503) return 'overloaded_error'
  return status >= 500 ? 'api_error' : 'invalid_request_error'
}
