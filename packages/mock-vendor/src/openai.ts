/** The chat completions API of OpenAI, and of the many compatible ones. */
import type { IncomingHttpHeaders } from 'node:http'
import {
  type Answer,
  type Asked,
  countTokens,
  type Dialect,
  type Failure,
  isTruncated,
  remaining,
  tightest,
  tokenText,
  wholeText,
} from './dialect.js'
import type { Excess, LimitUnit, Standing } from './limits.js'

export const openai: Dialect = {
  name: 'openai',
  requestIdHeader: 'x-request-id',

  keyOf: ({ authorization }: IncomingHttpHeaders) => authorization?.replace(/^Bearer /i, '') ?? '',

  read(body: unknown): Asked | Failure {
    if (typeof body !== 'object' || body === null) return unreadable
    const { model, messages, stream, stream_options, ...rest } = body as Record<string, unknown>
    if (typeof model !== 'string' || model === '') return missing('model')
    if (!Array.isArray(messages)) return missing('messages')
    const maxTokens = rest.max_completion_tokens ?? rest.max_tokens
    return {
      model,
      streamed: stream === true,
      includeUsage: (stream_options as { include_usage?: unknown } | null)?.include_usage === true,
      promptTokens: countTokens(messages),
      maxTokens: typeof maxTokens === 'number' ? maxTokens : Number.POSITIVE_INFINITY,
    }
  },

  models: (names) => ({
    object: 'list',
    data: names.map((id) => ({ id, object: 'model', created: 1_700_000_000, owned_by: 'mock' })),
  }),

  limitHeaders(standings: readonly Standing[]): Record<string, string> {
    const headers: Record<string, string> = {}
    for (const standing of tightest(standings)) {
      const { unit, limit, resetMs } = standing
      if (unit !== 'requests' && unit !== 'tokens') continue
      headers[`x-ratelimit-limit-${unit}`] = String(limit)
      headers[`x-ratelimit-remaining-${unit}`] = String(remaining(standing))
      headers[`x-ratelimit-reset-${unit}`] = goDuration(resetMs)
    }
    return headers
  },

  failure: (status, message = MESSAGES[status] ?? 'The server had an error.') => ({
    status,
    message,
    type: status === 429 ? 'requests' : status < 500 ? 'invalid_request_error' : 'server_error',
    code: status === 429 ? 'rate_limit_exceeded' : undefined,
  }),

  limited({ unit, limit, used, requested, waitMs, windowMs }: Excess, model: string): Failure {
    const window = windowMs === 60_000 ? 'min' : `${windowMs / 1_000} s`
    const sums = `Limit ${limit}, Used ${used}, Requested ${requested}`
    return {
      status: 429,
      message: `Rate limit reached for ${model} in organization org-mock on ${WORDS[unit]} per ${window}: ${sums}. Please try again in ${goDuration(waitMs)}.`,
      type: unit === 'requests' ? 'requests' : 'tokens',
      code: 'rate_limit_exceeded',
    }
  },

  unauthorized: (key) => ({
    status: 401,
    message: key === '' ? "You didn't provide an API key." : 'Incorrect API key provided.',
    type: 'invalid_request_error',
    code: key === '' ? undefined : 'invalid_api_key',
  }),

  errorBody: ({ message, type, param, code }) => ({
    error: { message, type, param: param ?? null, code: code ?? null },
  }),

  whole: (answer) => ({
    id: `chatcmpl-mock${answer.number}`,
    object: 'chat.completion',
    created: Math.floor(answer.createdMs / 1_000),
    model: answer.model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: wholeText(answer),
          refusal: null,
          annotations: [],
        },
        logprobs: null,
        finish_reason: finishReason(answer),
      },
    ],
    usage: usageOf(answer),
    service_tier: 'default',
    system_fingerprint: 'fp_mock',
  }),

  opening: (answer) => [
    chunk(answer, { delta: { role: 'assistant', content: '', refusal: null } }),
  ],
  token: (answer, index) => chunk(answer, { delta: { content: tokenText(index) } }),
  closing(answer: Answer): string[] {
    const events = [chunk(answer, { delta: {}, finish_reason: finishReason(answer) })]
    const usage = usageOf(answer)
    if (answer.includeUsage) events.push(event({ ...base(answer), choices: [], usage }))
    events.push('data: [DONE]\n\n')
    return events
  },
  breakdown: () => event(openai.errorBody(openai.failure(500), '')),
}

const MESSAGES: Readonly<Record<number, string>> = {
  429: 'Rate limit reached for requests.',
  500: 'The server had an error while processing your request. Sorry about that!',
  503: 'The engine is currently overloaded, please try again later.',
}

const WORDS: Readonly<Record<LimitUnit, string>> = {
  requests: 'requests',
  tokens: 'tokens',
  inputTokens: 'input tokens',
  outputTokens: 'output tokens',
}

const unreadable: Failure = {
  status: 400,
  message: 'We could not parse the JSON body of your request.',
  type: 'invalid_request_error',
}

function missing(param: string): Failure {
  return {
    status: 400,
    message: `Missing required parameter: '${param}'.`,
    type: 'invalid_request_error',
    param,
    code: 'missing_required_parameter',
  }
}

function event(data: unknown): string {
  return `data: ${JSON.stringify(data)}\n\n`
}

function base({ number, createdMs, model }: Answer) {
  return {
    id: `chatcmpl-mock${number}`,
    object: 'chat.completion.chunk',
    created: Math.floor(createdMs / 1_000),
    model,
    service_tier: 'default',
    system_fingerprint: 'fp_mock',
  }
}

/** If the usage comes at the end, every other chunk has `usage: null`. */
function chunk(answer: Answer, choice: { delta: object; finish_reason?: string }): string {
  const { delta, finish_reason = null } = choice
  const choices = [{ index: 0, delta, logprobs: null, finish_reason }]
  return event({ ...base(answer), choices, ...(answer.includeUsage && { usage: null }) })
}

function finishReason(answer: Answer): 'length' | 'stop' {
  return isTruncated(answer) ? 'length' : 'stop'
}

function usageOf({ promptTokens, tokens }: Answer) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: tokens,
    total_tokens: promptTokens + tokens,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
  }
}

/** Durations in Go's format: `12ms`, `1.5s`, `6m0s`, `1h0m0s`. */
export function goDuration(ms: number): string {
  const whole = Math.ceil(ms)
  if (whole < 1_000) return `${whole}ms`
  const minutes = Math.floor(whole / 60_000)
  const seconds = `${(whole % 60_000) / 1_000}s`
  if (minutes === 0) return seconds
  if (minutes < 60) return `${minutes}m${seconds}`
  return `${Math.floor(minutes / 60)}h${minutes % 60}m${seconds}`
}
