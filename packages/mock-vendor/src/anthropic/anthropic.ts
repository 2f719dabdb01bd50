/** Anthropic: API keys, limit headers and endpoints. */
import type { IncomingHttpHeaders } from 'node:http'
import { type Dialect, type Failure, json } from '../dialect.js'
import {
  type Excess,
  type LimitState,
  type LimitUnit,
  remaining,
  tightest,
} from '../quota/contract.js'
import { errorBody, failure, failures } from './errors.js'
import { fileEndpoints } from './files.js'
import { countMessageTokens, messages } from './messages.js'

export const anthropic: Dialect = {
  name: 'anthropic',
  requestIdHeader: 'request-id',
  endpoints: [
    messages,
    countMessageTokens,
    ...fileEndpoints,
    {
      method: 'GET',
      path: '/v1/models',
      read: ({ models }) =>
        json({
          data: models.map(modelOf),
          has_more: false,
          first_id: models[0] ?? null,
          last_id: models.at(-1) ?? null,
        }),
    },
    {
      method: 'GET',
      path: '/v1/models/{model}',
      read({ models, params: { model = '' } }) {
        return models.includes(model) ? json(modelOf(model)) : failure(404, `model: ${model}`)
      },
    },
  ],

  keyOf(headers: IncomingHttpHeaders): string {
    const key = headers['x-api-key'] ?? headers.authorization?.replace(/^Bearer /i, '')
    return typeof key === 'string' ? key : ''
  },

  limitHeaders(states: readonly LimitState[], wallMs: number): Record<string, string> {
    const headers: Record<string, string> = {}
    for (const state of tightest(states)) {
      const prefix = `anthropic-ratelimit-${HEADER_WORDS[state.unit]}`
      headers[`${prefix}-limit`] = String(state.limit)
      headers[`${prefix}-remaining`] = String(remaining(state))
      headers[`${prefix}-reset`] = wholeSecond(wallMs + state.resetMs)
    }
    return headers
  },

  failure,
  failures,
  errorBody,

  limited({ unit, limit, windowMs }: Excess, model: string): Failure {
    const contract = `${limit} ${HEADER_WORDS[unit].replace('-', ' ')} per ${windowText(windowMs)}`
    const message = `This request would exceed your organization's rate limit of ${contract} (model: ${model}).`
    return failure(429, message)
  },

  unauthorized: (key) =>
    failure(401, key === '' ? 'x-api-key header is required' : 'invalid x-api-key'),
}

const HEADER_WORDS: Readonly<Record<LimitUnit, string>> = {
  requests: 'requests',
  tokens: 'tokens',
  inputTokens: 'input-tokens',
  outputTokens: 'output-tokens',
}

function modelOf(id: string) {
  return { type: 'model', id, display_name: id, created_at: '2024-01-01T00:00:00Z' }
}

/** The text after `per` in a refusal. */
function windowText(windowMs: number): string {
  return windowMs === 60_000 ? 'minute' : `${windowMs / 1_000} s`
}

/** RFC 3339 in whole seconds, rounded up so that clients do not return too early. */
function wholeSecond(wallMs: number): string {
  return new Date(Math.ceil(wallMs / 1_000) * 1_000).toISOString().replace('.000Z', 'Z')
}
