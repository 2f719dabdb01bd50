/** OpenAI and vendors with compatible APIs: API keys, limit headers and endpoints. */
import type { IncomingHttpHeaders } from 'node:http'
import { type Dialect, type Failure, json } from '../dialect.js'
import {
  type Excess,
  type LimitState,
  type LimitUnit,
  remaining,
  tightest,
} from '../quota/contract.js'
import { transcriptions, translations } from './audio.js'
import { chat } from './chat.js'
import { embeddings } from './embeddings.js'
import { errorBody, failure, failures } from './errors.js'
import { fileEndpoints } from './files.js'
import { imageEdits, imageGenerations, imageVariations } from './images.js'
import { responses } from './responses.js'

export const openai: Dialect = {
  name: 'openai',
  requestIdHeader: 'x-request-id',
  endpoints: [
    chat,
    responses,
    embeddings,
    imageGenerations,
    imageEdits,
    imageVariations,
    transcriptions,
    translations,
    ...fileEndpoints,
    {
      method: 'GET',
      path: '/v1/models',
      read: ({ models }) => json({ object: 'list', data: models.map(modelOf) }),
    },
    {
      method: 'GET',
      path: '/v1/models/{model}',
      read({ models, params: { model = '' } }) {
        if (models.includes(model)) return json(modelOf(model))
        const missing = failure(404, `The model '${model}' does not exist`)
        return { ...missing, param: 'model', code: 'model_not_found' }
      },
    },
  ],

  keyOf: ({ authorization }: IncomingHttpHeaders) => authorization?.replace(/^Bearer /i, '') ?? '',

  limitHeaders(states: readonly LimitState[]): Record<string, string> {
    const headers: Record<string, string> = {}
    for (const state of tightest(states)) {
      const { unit, limit, resetMs } = state
      if (unit !== 'requests' && unit !== 'tokens') continue
      headers[`x-ratelimit-limit-${unit}`] = String(limit)
      headers[`x-ratelimit-remaining-${unit}`] = String(remaining(state))
      headers[`x-ratelimit-reset-${unit}`] = goDuration(resetMs)
    }
    return headers
  },

  failure,
  failures,
  errorBody,

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
}

const WORDS: Readonly<Record<LimitUnit, string>> = {
  requests: 'requests',
  tokens: 'tokens',
  inputTokens: 'input tokens',
  outputTokens: 'output tokens',
}

function modelOf(id: string) {
  return { id, object: 'model', created: 1_700_000_000, owned_by: 'mock' }
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
