/** Anthropic's messages API. */
import { amountIn } from '../tokens/amount.js'
import { estimateTokens } from '../tokens/estimate.js'
import { bearer, type Complaint, type Protocol } from './protocol.js'

export const anthropic: Protocol = {
  name: 'anthropic',
  callerKey(headers) {
    const key = headers['x-api-key']
    return typeof key === 'string' ? key : bearer(headers)
  },
  vendorKey: (secret) => ['x-api-key', secret],
  read({ model, stream, messages, system, tools, max_tokens: most }) {
    return {
      model: typeof model === 'string' ? model : undefined,
      streamed: stream === true,
      promptTokens: estimateTokens([system, messages, tools]),
      maxTokens: amountIn(most),
    }
  },
  // A stream of Anthropic's says what it cost without being asked.
  hidesUsage: () => false,
  isUsageEvent: () => false,
  isCutOff: (end) => GOING_ON.test(end) && !LAST_WORD.test(end),
  rewrite: (body, { model }) => JSON.stringify(model === undefined ? body : { ...body, model }),
  errorType: 'application/json',
  errorBody: (complaint) => JSON.stringify(errorOf(complaint)),
  errorEvent: (complaint) => `event: error\ndata: ${JSON.stringify(errorOf(complaint))}\n\n`,
  repeatable: (path) => /\/messages(\/count_tokens)?$/.test(path),
}

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
