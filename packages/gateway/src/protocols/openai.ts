/** OpenAI's API, and whatever speaks it: chat completions, responses, embeddings. */
import { FieldNames, type JsonField } from '../request/body/json-fields.js'
import { amountIn, largestOf } from '../tokens/estimate.js'
import { bearer, type Complaint, type Protocol, pathMatches } from './protocol.js'

const MAX_TOKENS = ['max_completion_tokens', 'max_tokens', 'max_output_tokens'] as const

export const openai: Protocol = {
  name: 'openai',
  callerKey: bearer,
  vendorKey: (secret) => ['authorization', `Bearer ${secret}`],
  format: {
    bodyOn(path) {
      if (pathMatches(path, GENERATING)) return 'json'
      if (pathMatches(path, GENERATING_FROM_FORM)) return 'form'
      return pathMatches(path, STORING) ? 'file' : 'any'
    },
    isFree: (path) => pathMatches(path, FREE),
    fields: new FieldNames(
      ['model', 'stream', 'stream_options', ...MAX_TOKENS, 'n', 'best_of'],
      ['messages', 'prompt', 'input', 'instructions', 'tools'],
    ),
    read(values, promptTokens) {
      return {
        model: values.get('model') as string | undefined,
        streamed: values.get('stream') === true,
        promptTokens,
        maxTokens: largestOf(values, MAX_TOKENS),
        answers: answersIn(values),
      }
    },
  },
  hidesUsage(path, fields) {
    if (fields.get('stream')?.value !== true || !path.endsWith('/completions')) return false
    return optionsIn(fields).include_usage !== true
  },
  usageFields: (fields) => ({ stream_options: { ...optionsIn(fields), include_usage: true } }),
  isUsageEvent: (event) => /"choices"\s*:\s*\[\s*\]/.test(event) && /"usage"\s*:\s*\{/.test(event),
  isCutOff,
  errorType: 'application/json',
  errorBody: (complaint) => JSON.stringify(errorOf(complaint)),
  errorEvent: (complaint) => `data: ${JSON.stringify(errorOf(complaint))}\n\n`,
  // Generating twice costs twice. A job or a file twice is two of them.
  repeatable: (path) => REPEATABLE.test(path),
}

const REPEATABLE = /\/(completions|responses|embeddings|moderations|images\/generations)$/
const GENERATING =
  /\/(completions|responses|embeddings|moderations|images\/generations|audio\/speech|runs)$/
const GENERATING_FROM_FORM =
  /\/(audio\/transcriptions|audio\/translations|images\/edits|images\/variations|videos)$/
const FREE = /\/moderations$/
const STORING = /\/(files|uploads|uploads\/[^/]+\/parts)$/

const LAST_WORD = /^data: ?\[DONE\]|"error"\s*:\s*[{"]|"type"\s*:\s*"error"/m
const CHOICE = /"choices"\s*:\s*\[\s*\{/
/** Some who speak this protocol leave out the last word, but not this. */
const FINISHED = /"finish_reason"\s*:\s*"[^"]/
const RESPONDING = /"type"\s*:\s*"response\./
const RESPONDED = /"type"\s*:\s*"response\.(completed|incomplete|failed|cancelled)"/

function isCutOff(end: string): boolean {
  if (LAST_WORD.test(end)) return false
  if (CHOICE.test(end)) return !FINISHED.test(end)
  return RESPONDING.test(end) && !RESPONDED.test(end)
}

/** With `best_of`, answers that are not returned are charged as well. */
function answersIn(values: ReadonlyMap<string, unknown>): number {
  return Math.max(1, amountIn(values.get('n')) ?? 0, amountIn(values.get('best_of')) ?? 0)
}

function optionsIn(fields: ReadonlyMap<string, JsonField>): Record<string, unknown> {
  const options = fields.get('stream_options')?.value
  return typeof options === 'object' && options !== null ? { ...options } : {}
}

function errorOf({ status, code, message, requestId }: Complaint): object {
  return { error: { message, type: typeOf(status), param: null, code, request_id: requestId } }
}

function typeOf(status: number): string {
  if (status === 401) return 'authentication_error'
  if (status === 429) return 'rate_limit_error'
  if (status >= 500) return 'server_error'
  return 'invalid_request_error'
}
