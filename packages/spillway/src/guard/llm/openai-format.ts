/** OpenAI's API, and every other one with the same format: chat completions, responses, embeddings. */
import { openaiErrors } from './errors/openai-errors.js'
import { openaiUsage } from './usage/usage-format.js'
import {
  amountIn,
  largestOf,
  pathMatches,
  type ReportedError,
  type RequestFields,
  type VendorFormat,
} from './vendor-format.js'

const MAX_TOKENS = ['max_completion_tokens', 'max_tokens', 'max_output_tokens'] as const

const GENERATING =
  /\/(completions|responses|responses\/(input_tokens|compact)|embeddings|moderations|images\/generations|audio\/speech|runs)$/
const GENERATING_FROM_FORM =
  /\/(audio\/transcriptions|audio\/translations|images\/edits|images\/variations|videos)$/
const FREE = /\/(moderations|responses\/input_tokens)$/
/** Their answers have no output tokens. */
const INPUT_ONLY = /\/embeddings$/
const STORING = /\/(files|uploads|uploads\/[^/]+\/parts)$/
/** Repeating these requests only costs twice. Repeating others creates a second job or file. */
const REPEATABLE =
  /\/(completions|responses|responses\/input_tokens|embeddings|moderations|images\/generations)$/

export const openaiFormat: VendorFormat = {
  name: 'openai',
  bodyOn(path) {
    if (pathMatches(path, GENERATING)) return 'json'
    if (pathMatches(path, GENERATING_FROM_FORM)) return 'form'
    return pathMatches(path, STORING) ? 'file' : 'any'
  },
  isFree: (path) => pathMatches(path, FREE),
  isRepeatable: (path) => REPEATABLE.test(path),
  valueFields: ['model', 'stream', 'stream_options', ...MAX_TOKENS, 'n', 'best_of'],
  contentFields: ['messages', 'prompt', 'input', 'instructions', 'tools'],
  factsOf(fields, prompt, { path }) {
    return {
      model: fields.get('model') as string | undefined,
      streamed: fields.get('stream') === true,
      prompt,
      maxTokens: INPUT_ONLY.test(path) ? 0 : largestOf(fields, MAX_TOKENS),
      answers: answersIn(fields),
    }
  },
  hidesUsage(path, fields) {
    if (fields.get('stream') !== true || !path.endsWith('/completions')) return false
    return streamOptions(fields).include_usage !== true
  },
  usageFields: (fields) => ({ stream_options: { ...streamOptions(fields), include_usage: true } }),
  isUsageEvent: (event) => /"choices"\s*:\s*\[\s*\]/.test(event) && /"usage"\s*:\s*\{/.test(event),
  usage: openaiUsage,
  errors: openaiErrors,
  errorBody({ status, code, message, requestId, retryAfterMs }: ReportedError) {
    const type = errorType(status)
    const own = { code, request_id: requestId, retry_after_ms: retryAfterMs }
    return { error: { message, type, param: null, ...own } }
  },
}

/** With `best_of`, answers that are not returned are charged as well. */
function answersIn(fields: RequestFields): number {
  return Math.max(1, amountIn(fields.get('n')) ?? 0, amountIn(fields.get('best_of')) ?? 0)
}

function streamOptions(fields: RequestFields): Record<string, unknown> {
  const options = fields.get('stream_options')
  return typeof options === 'object' && options !== null ? { ...options } : {}
}

function errorType(status: number): string {
  if (status === 401) return 'authentication_error'
  if (status === 429) return 'rate_limit_error'
  if (status >= 500) return 'server_error'
  return 'invalid_request_error'
}
