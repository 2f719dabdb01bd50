/** The messages API of Anthropic. */
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
  windowText,
} from './dialect.js'
import type { Excess, LimitUnit, Standing } from './limits.js'

export const anthropic: Dialect = {
  name: 'anthropic',
  requestIdHeader: 'request-id',

  keyOf(headers: IncomingHttpHeaders): string {
    const key = headers['x-api-key'] ?? headers.authorization?.replace(/^Bearer /i, '')
    return typeof key === 'string' ? key : ''
  },

  read(body: unknown, headers: IncomingHttpHeaders): Asked | Failure {
    if (headers['anthropic-version'] === undefined) {
      return invalid('anthropic-version: header is required')
    }
    if (typeof body !== 'object' || body === null) {
      return invalid('The request body is not valid JSON')
    }
    const { model, messages, stream, system, max_tokens } = body as Record<string, unknown>
    if (typeof model !== 'string' || model === '') return invalid('model: Field required')
    if (!Array.isArray(messages)) return invalid('messages: Field required')
    if (typeof max_tokens !== 'number') return invalid('max_tokens: Field required')
    return {
      model,
      streamed: stream === true,
      includeUsage: true,
      promptTokens: countTokens(messages, system),
      maxTokens: max_tokens,
    }
  },

  models: (names) => ({
    data: names.map((id) => ({
      type: 'model',
      id,
      display_name: id,
      created_at: '2024-01-01T00:00:00Z',
    })),
    has_more: false,
    first_id: names[0] ?? null,
    last_id: names.at(-1) ?? null,
  }),

  limitHeaders(standings: readonly Standing[], wallMs: number): Record<string, string> {
    const headers: Record<string, string> = {}
    for (const standing of tightest(standings)) {
      const prefix = `anthropic-ratelimit-${HEADER_WORDS[standing.unit]}`
      headers[`${prefix}-limit`] = String(standing.limit)
      headers[`${prefix}-remaining`] = String(remaining(standing))
      headers[`${prefix}-reset`] = wholeSecond(wallMs + standing.resetMs)
    }
    return headers
  },

  failure: (status, message = MESSAGES[status] ?? 'Internal server error') => ({
    status,
    message,
    type: TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error'),
  }),

  limited({ unit, limit, windowMs }: Excess, model: string): Failure {
    const contract = `${limit} ${HEADER_WORDS[unit].replace('-', ' ')} per ${windowText(windowMs)}`
    const message = `This request would exceed your organization's rate limit of ${contract} (model: ${model}).`
    return anthropic.failure(429, message)
  },

  unauthorized: (key) =>
    anthropic.failure(401, key === '' ? 'x-api-key header is required' : 'invalid x-api-key'),

  errorBody: ({ type, message }, requestId) => ({
    type: 'error',
    error: { type, message },
    request_id: requestId,
  }),

  whole: (answer) => ({
    ...message(answer),
    content: [{ type: 'text', text: wholeText(answer), citations: null }],
    ...stop(answer),
    usage: usageOf(answer, answer.tokens),
  }),

  opening: (answer) => [
    event('message_start', { message: message(answer) }),
    event('content_block_start', {
      index: 0,
      content_block: { type: 'text', text: '', citations: null },
    }),
    event('ping', {}),
  ],
  token: (_answer, index) =>
    event('content_block_delta', {
      index: 0,
      delta: { type: 'text_delta', text: tokenText(index) },
    }),
  closing: (answer) => [
    event('content_block_stop', { index: 0 }),
    event('message_delta', { delta: stop(answer), usage: { output_tokens: answer.tokens } }),
    event('message_stop', {}),
  ],
  breakdown() {
    const { type, message } = anthropic.failure(529)
    return event('error', { error: { type, message } })
  },
}

const HEADER_WORDS: Readonly<Record<LimitUnit, string>> = {
  requests: 'requests',
  tokens: 'tokens',
  inputTokens: 'input-tokens',
  outputTokens: 'output-tokens',
}

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

function invalid(message: string): Failure {
  return anthropic.failure(400, message)
}

/** Every event has its name twice. */
function event(type: string, data: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
}

/** The message before its first token. */
function message(answer: Answer) {
  return {
    id: `msg_mock${answer.number}`,
    type: 'message',
    role: 'assistant',
    model: answer.model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: usageOf(answer, 1),
  }
}

function stop(answer: Answer) {
  return { stop_reason: isTruncated(answer) ? 'max_tokens' : 'end_turn', stop_sequence: null }
}

function usageOf({ promptTokens }: Answer, outputTokens: number) {
  return {
    input_tokens: promptTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: outputTokens,
    service_tier: 'standard',
  }
}

/** RFC 3339 in whole seconds, rounded up so that clients do not return too early. */
function wholeSecond(wallMs: number): string {
  return new Date(Math.ceil(wallMs / 1_000) * 1_000).toISOString().replace('.000Z', 'Z')
}
