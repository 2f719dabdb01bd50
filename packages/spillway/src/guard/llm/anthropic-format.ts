/** Anthropic's messages API. */
import { anthropicErrors } from './errors/anthropic-errors.js'
import { anthropicUsage } from './usage/usage-format.js'
import { largestOf, pathMatches, type ReportedError, type VendorFormat } from './vendor-format.js'

const MAX_TOKENS = ['max_tokens', 'max_tokens_to_sample'] as const

const GENERATING = /\/(messages|messages\/count_tokens|complete)$/
const FREE = /\/messages\/count_tokens$/
const STORING = /\/(files|skills|skills\/[^/]+\/versions)$/

export const anthropicFormat: VendorFormat = {
  name: 'anthropic',
  bodyOn(path) {
    if (pathMatches(path, GENERATING)) return 'json'
    return pathMatches(path, STORING) ? 'file' : 'any'
  },
  isFree: (path) => pathMatches(path, FREE),
  isRepeatable: (path) => /\/messages(\/count_tokens)?$/.test(path),
  valueFields: ['model', 'stream', ...MAX_TOKENS],
  contentFields: ['system', 'messages', 'tools', 'prompt'],
  factsOf(fields, prompt) {
    return {
      model: fields.get('model') as string | undefined,
      streamed: fields.get('stream') === true,
      prompt,
      maxTokens: largestOf(fields, MAX_TOKENS),
      answers: 1,
    }
  },
  // Anthropic's streams always report their usage.
  hidesUsage: () => false,
  isUsageEvent: () => false,
  usage: anthropicUsage,
  errors: anthropicErrors,
  errorBody({ status, code, message, requestId, retryAfterMs }: ReportedError) {
    return {
      type: 'error',
      error: { type: errorType(status), message, code, retry_after_ms: retryAfterMs },
      request_id: requestId,
    }
  },
}

function errorType(status: number): string {
  if (status === 401) return 'authentication_error'
  if (status === 404) return 'not_found_error'
  if (status === 413) return 'request_too_large'
  if (status === 429) return 'rate_limit_error'
  if (status === 504) return 'timeout_error'
  if (status === 503) return 'overloaded_error'
  return status >= 500 ? 'api_error' : 'invalid_request_error'
}
