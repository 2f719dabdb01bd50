/** OpenAI's API, and whatever speaks it: chat completions, responses, embeddings. */
import { amountIn } from '../tokens/amount.js'
import { estimateTokens } from '../tokens/estimate.js'
import { bearer, type Complaint, type Protocol } from './protocol.js'

export const openai: Protocol = {
  name: 'openai',
  callerKey: bearer,
  vendorKey: (secret) => ['authorization', `Bearer ${secret}`],
  read(body) {
    const { model, stream, messages, prompt, input, instructions, tools } = body
    return {
      model: typeof model === 'string' ? model : undefined,
      streamed: stream === true,
      promptTokens: estimateTokens([messages, prompt, input, instructions, tools]),
      maxTokens: answerLimit(body),
    }
  },
  hidesUsage(path, { stream, stream_options: options }) {
    if (stream !== true || !path.endsWith('/completions')) return false
    return (options as { include_usage?: unknown } | null | undefined)?.include_usage !== true
  },
  isUsageEvent: (event) => /"choices"\s*:\s*\[\s*\]/.test(event) && /"usage"\s*:\s*\{/.test(event),
  isCutOff,
  rewrite(body, { model, tellUsage }) {
    const options = typeof body.stream_options === 'object' ? body.stream_options : undefined
    return JSON.stringify({
      ...body,
      ...(model !== undefined && { model }),
      ...(tellUsage && { stream_options: { ...options, include_usage: true } }),
    })
  },
  errorType: 'application/json',
  errorBody: (complaint) => JSON.stringify(errorOf(complaint)),
  errorEvent: (complaint) => `data: ${JSON.stringify(errorOf(complaint))}\n\n`,
  // Generating twice costs twice. A job or a file twice is two of them.
  repeatable: (path) => GENERATING.test(path),
}

const GENERATING = /\/(completions|responses|embeddings|moderations|images\/generations)$/

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

/** Several answers to one question cost each, those that are not the best of them as well. */
function answerLimit(body: Record<string, unknown>): number | undefined {
  const most = amountIn(body.max_completion_tokens ?? body.max_tokens ?? body.max_output_tokens)
  if (most === undefined) return undefined
  const answers = Math.max(1, amountIn(body.n) ?? 0, amountIn(body.best_of) ?? 0)
  return amountIn(most * answers)
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
