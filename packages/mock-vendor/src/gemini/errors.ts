/** Errors in the format of Google's APIs (google.rpc.Status). */

import type { Failure } from '../dialect.js'
import type { ErrorKind } from '../error-kinds.js'
import type { Excess, LimitUnit } from '../quota/contract.js'

const DAY_MS = 86_400_000
const TYPE_PREFIX = 'type.googleapis.com/google.rpc.'

const STATUS_NAMES: Readonly<Record<number, string>> = {
  200: 'OK',
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

const MESSAGES: Readonly<Record<number, string>> = {
  400: 'Request contains an invalid argument.',
  404: 'Requested entity was not found.',
  429: 'Resource has been exhausted (e.g. check quota).',
  503: 'The model is overloaded. Please try again later.',
  504: 'Deadline expired before operation could complete.',
}

function otherStatus(status: number): string {
  return status < 500 ? 'INVALID_ARGUMENT' : 'INTERNAL'
}

export function failure(status: number, message = MESSAGES[status] ?? 'Internal error.'): Failure {
  return { status, message, type: STATUS_NAMES[status] ?? otherStatus(status) }
}

export function errorBody({ status, type, message, details }: Failure) {
  return { error: { code: status, message, status: type, ...(details && { details }) } }
}

export function limited({ unit, limit, waitMs, windowMs }: Excess, model: string): Failure {
  const quota = { unit, limit, isDaily: windowMs === DAY_MS }
  return exhausted(quota, { model, retrySeconds: Math.ceil(waitMs / 1_000) })
}

export const unauthorized: Failure = {
  ...failure(400, 'API key not valid. Please pass a valid API key.'),
  details: [
    {
      '@type': `${TYPE_PREFIX}ErrorInfo`,
      reason: 'API_KEY_INVALID',
      domain: 'googleapis.com',
      metadata: { service: 'generativelanguage.googleapis.com' },
    },
  ],
}

export const failures: Readonly<Record<ErrorKind, Failure>> = {
  'rate-limited': exhausted(
    { unit: 'requests', limit: 10, isDaily: false },
    { model: 'mock-model', retrySeconds: 30 },
  ),
  'quota-exhausted': exhausted(
    { unit: 'requests', limit: 250, isDaily: true },
    { model: 'mock-model', retrySeconds: 30 },
  ),
  'invalid-key': unauthorized,
  'context-window': failure(
    400,
    'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
  ),
  // A blocked prompt is no error for Google.
  'content-filter': {
    ...failure(200, 'blocked'),
    body: {
      promptFeedback: { blockReason: 'PROHIBITED_CONTENT' },
      usageMetadata: { promptTokenCount: 8, totalTokenCount: 8 },
      modelVersion: 'mock-model',
    },
  },
  overloaded: failure(503),
  'bad-request': failure(400),
  server: failure(500),
}

interface Quota {
  readonly unit: LimitUnit
  readonly limit: number
  readonly isDaily: boolean
}

/** A 429 with the quota in `QuotaFailure` and the time to wait in `RetryInfo`. */
function exhausted(
  { unit, limit, isDaily }: Quota,
  { model, retrySeconds }: { model: string; retrySeconds: number },
): Failure {
  const metric = unit === 'requests' ? 'requests' : 'input_token_count'
  const name = `generativelanguage.googleapis.com/generate_content_paid_tier_${metric}`
  const what = unit === 'requests' ? 'GenerateRequests' : 'GenerateContentInputTokens'
  const message =
    'You exceeded your current quota, please check your plan and billing details. ' +
    'For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.\n' +
    `* Quota exceeded for metric: ${name}, limit: ${limit}, model: ${model}\n` +
    `Please retry in ${retrySeconds}s.`
  const violation = {
    quotaMetric: name,
    quotaId: `${what}Per${isDaily ? 'Day' : 'Minute'}PerProjectPerModel-PaidTier`,
    quotaDimensions: { location: 'global', model },
    quotaValue: String(limit),
  }
  return {
    ...failure(429, message),
    details: [
      { '@type': `${TYPE_PREFIX}QuotaFailure`, violations: [violation] },
      {
        '@type': `${TYPE_PREFIX}Help`,
        links: [
          {
            description: 'Learn more about Gemini API quotas',
            url: 'https://ai.google.dev/gemini-api/docs/rate-limits',
          },
        ],
      },
      { '@type': `${TYPE_PREFIX}RetryInfo`, retryDelay: `${retrySeconds}s` },
    ],
  }
}
