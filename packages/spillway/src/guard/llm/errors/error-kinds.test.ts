import { describe, expect, it } from 'vitest'
import type { ErrorKind } from '../../../core/failures/error-kind.js'
import { anthropicErrors } from './anthropic-errors.js'
import { readFailure } from './error-table.js'
import { geminiErrors } from './gemini-errors.js'
import { openaiErrors } from './openai-errors.js'

const TABLES = {
  openai: openaiErrors,
  azure: openaiErrors,
  anthropic: anthropicErrors,
  gemini: geminiErrors,
}

/** Wednesday, 14:00 in Los Angeles. */
const NOW_MS = Date.parse('2026-11-18T22:00:00Z')
const UNTIL_MIDNIGHT_MS = 10 * 3_600_000

interface Fixture {
  vendor: keyof typeof TABLES
  what: string
  status: number
  body: object | string
  headers?: Record<string, string>
  kind: ErrorKind
  retryAfterMs?: number
  perModel?: true
}

const openai = (message: string, type: string, code: string | null = null) => ({
  error: { message, type, param: null, code },
})
const anthropic = (type: string, message: string) => ({
  type: 'error',
  error: { type, message },
  request_id: 'req_1',
})
const azure = (code: string, message: string, more: object = {}) => ({
  error: { code, message, ...more },
})
const gemini = (code: number, status: string, message: string, details: object[] = []) => ({
  error: { code, message, status, details },
})
const quotaFailure = (quotaId: string) => ({
  '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
  violations: [{ quotaMetric: 'generativelanguage.googleapis.com/requests', quotaId }],
})
const retryInfo = (retryDelay: string) => ({
  '@type': 'type.googleapis.com/google.rpc.RetryInfo',
  retryDelay,
})
const errorInfo = (reason: string) => ({
  '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
  reason,
  domain: 'googleapis.com',
})

/** Written from the documented formats of the vendors. */
const FIXTURES: readonly Fixture[] = [
  {
    vendor: 'openai',
    what: 'tokens of a minute are used up',
    status: 429,
    body: openai(
      'Rate limit reached for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Used 29500, Requested 900. Please try again in 800ms.',
      'tokens',
      'rate_limit_exceeded',
    ),
    kind: 'rate-limited',
    retryAfterMs: 800,
  },
  {
    vendor: 'openai',
    what: 'requests are used up, with reset headers',
    status: 429,
    headers: {
      'x-ratelimit-remaining-requests': '0',
      'x-ratelimit-reset-requests': '6m0s',
      'x-ratelimit-remaining-tokens': '100',
      'x-ratelimit-reset-tokens': '120ms',
    },
    body: openai('Rate limit reached', 'requests', 'rate_limit_exceeded'),
    kind: 'rate-limited',
    retryAfterMs: 360_000,
  },
  {
    vendor: 'openai',
    what: 'retry-after-ms is exact',
    status: 429,
    headers: { 'retry-after': '2', 'retry-after-ms': '1250' },
    body: openai('Rate limit reached', 'requests', 'rate_limit_exceeded'),
    kind: 'rate-limited',
    retryAfterMs: 1_250,
  },
  {
    vendor: 'openai',
    what: 'requests of a day are used up',
    status: 429,
    headers: { 'retry-after': '1' },
    body: openai(
      'Rate limit reached for gpt-4o in organization org-1 on requests per day (RPD): Limit 200, Used 200, Requested 1. Please try again in 7m12s.',
      'requests',
      'rate_limit_exceeded',
    ),
    kind: 'quota-exhausted',
    retryAfterMs: 432_000,
    perModel: true,
  },
  {
    vendor: 'openai',
    what: 'no credit is left',
    status: 429,
    body: openai(
      'You exceeded your current quota, please check your plan and billing details.',
      'insufficient_quota',
      'insufficient_quota',
    ),
    kind: 'quota-exhausted',
  },
  {
    vendor: 'openai',
    what: 'the hard limit of the month is reached',
    status: 400,
    body: openai(
      'Billing hard limit has been reached',
      'invalid_request_error',
      'billing_hard_limit_reached',
    ),
    kind: 'quota-exhausted',
  },
  {
    vendor: 'openai',
    what: 'one request exceeds the tokens of a minute',
    status: 429,
    body: openai(
      'Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 41000. The input or output tokens must be reduced in order to run successfully.',
      'tokens',
      'rate_limit_exceeded',
    ),
    kind: 'context-window',
  },
  {
    vendor: 'openai',
    what: 'the key is wrong',
    status: 401,
    body: openai(
      'Incorrect API key provided: sk-***1.',
      'invalid_request_error',
      'invalid_api_key',
    ),
    kind: 'invalid-key',
  },
  {
    vendor: 'openai',
    what: 'the prompt is too long',
    status: 400,
    body: openai(
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
      'invalid_request_error',
      'context_length_exceeded',
    ),
    kind: 'context-window',
  },
  {
    vendor: 'openai',
    what: 'an image prompt is rejected',
    status: 400,
    body: openai(
      'Your request was rejected by the safety system.',
      'image_generation_user_error',
      'content_policy_violation',
    ),
    kind: 'content-filter',
  },
  {
    vendor: 'openai',
    what: 'a prompt is flagged',
    status: 400,
    body: openai(
      'Invalid prompt: your prompt was flagged as potentially violating our usage policy.',
      'invalid_request_error',
      'invalid_prompt',
    ),
    kind: 'content-filter',
  },
  {
    vendor: 'openai',
    what: 'the model is overloaded',
    status: 503,
    body: openai('The engine is currently overloaded, please try again later', 'server_error'),
    kind: 'overloaded',
  },
  {
    vendor: 'openai',
    what: 'the rate rose too fast',
    status: 503,
    body: openai('Slow Down', 'server_error'),
    kind: 'rate-limited',
  },
  {
    vendor: 'openai',
    what: 'the model does not exist',
    status: 404,
    body: openai(
      'The model `gpt-9` does not exist or you do not have access to it.',
      'invalid_request_error',
      'model_not_found',
    ),
    kind: 'bad-request',
  },
  {
    vendor: 'openai',
    what: 'the country is not supported',
    status: 403,
    body: openai(
      'Country, region, or territory not supported',
      'request_forbidden',
      'unsupported_country_region_territory',
    ),
    kind: 'bad-request',
  },
  {
    vendor: 'openai',
    what: 'the server failed',
    status: 500,
    body: openai('The server had an error while processing your request.', 'server_error'),
    kind: 'server',
  },
  {
    vendor: 'openai',
    what: 'a proxy answers in HTML',
    status: 502,
    body: '<html><h1>502 Bad Gateway</h1></html>',
    kind: 'server',
  },
  {
    vendor: 'anthropic',
    what: 'tokens of a minute are used up',
    status: 429,
    headers: { 'retry-after': '12' },
    body: anthropic(
      'rate_limit_error',
      "This request would exceed your organization's rate limit of 40,000 input tokens per minute.",
    ),
    kind: 'rate-limited',
    retryAfterMs: 12_000,
  },
  {
    vendor: 'anthropic',
    what: 'output tokens are used up, with a reset date',
    status: 429,
    headers: {
      'anthropic-ratelimit-input-tokens-remaining': '9000',
      'anthropic-ratelimit-input-tokens-reset': '2026-11-18T22:00:40Z',
      'anthropic-ratelimit-output-tokens-remaining': '0',
      'anthropic-ratelimit-output-tokens-reset': '2026-11-18T22:00:15Z',
    },
    body: anthropic('rate_limit_error', 'Number of output tokens has exceeded your rate limit.'),
    kind: 'rate-limited',
    retryAfterMs: 15_000,
  },
  {
    vendor: 'anthropic',
    what: 'no credit is left',
    status: 400,
    body: anthropic(
      'invalid_request_error',
      'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.',
    ),
    kind: 'quota-exhausted',
  },
  {
    vendor: 'anthropic',
    what: 'the limit of the month is reached',
    status: 400,
    body: anthropic(
      'invalid_request_error',
      'You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.',
    ),
    kind: 'quota-exhausted',
    retryAfterMs: Date.parse('2026-12-01T00:00:00Z') - NOW_MS,
  },
  {
    vendor: 'anthropic',
    what: 'the bill is not paid',
    status: 402,
    body: anthropic('billing_error', "There's an issue with your billing or payment information."),
    kind: 'quota-exhausted',
  },
  {
    vendor: 'anthropic',
    what: 'the key is wrong',
    status: 401,
    body: anthropic('authentication_error', 'invalid x-api-key'),
    kind: 'invalid-key',
  },
  {
    vendor: 'anthropic',
    what: 'the organization is disabled',
    status: 403,
    body: anthropic('permission_error', 'This organization has been disabled.'),
    kind: 'invalid-key',
  },
  {
    vendor: 'anthropic',
    what: 'the key has no access to the model',
    status: 403,
    body: anthropic(
      'permission_error',
      'Your API key does not have permission to use the specified resource.',
    ),
    kind: 'bad-request',
  },
  {
    vendor: 'anthropic',
    what: 'the prompt is too long',
    status: 400,
    body: anthropic('invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum'),
    kind: 'context-window',
  },
  {
    vendor: 'anthropic',
    what: 'prompt and answer together are too long',
    status: 400,
    body: anthropic(
      'invalid_request_error',
      'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000',
    ),
    kind: 'context-window',
  },
  {
    vendor: 'anthropic',
    what: 'the answer is blocked',
    status: 400,
    body: anthropic('invalid_request_error', 'Output blocked by content filtering policy'),
    kind: 'content-filter',
  },
  {
    vendor: 'anthropic',
    what: 'the API is overloaded',
    status: 529,
    body: anthropic('overloaded_error', 'Overloaded'),
    kind: 'overloaded',
  },
  {
    vendor: 'anthropic',
    what: 'the request is malformed',
    status: 400,
    body: anthropic('invalid_request_error', 'max_tokens: Field required'),
    kind: 'bad-request',
  },
  {
    vendor: 'anthropic',
    what: 'the body is too large',
    status: 413,
    body: anthropic('request_too_large', 'Request exceeds the maximum allowed number of bytes.'),
    kind: 'bad-request',
  },
  {
    vendor: 'anthropic',
    what: 'the server failed',
    status: 500,
    body: anthropic('api_error', 'Internal server error'),
    kind: 'server',
  },
  {
    vendor: 'azure',
    what: 'tokens of a minute are used up',
    status: 429,
    headers: { 'retry-after-ms': '1500', 'retry-after': '2', 'x-ratelimit-reset-tokens': '2' },
    body: azure(
      '429',
      'Requests to the ChatCompletions_Create Operation have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 2 seconds.',
    ),
    kind: 'rate-limited',
    retryAfterMs: 1_500,
  },
  {
    vendor: 'azure',
    what: 'the time is only in the text',
    status: 429,
    body: azure(
      'RateLimitReached',
      'Your requests have exceeded the limit. Please retry after 5 seconds.',
    ),
    kind: 'rate-limited',
    retryAfterMs: 5_000,
  },
  {
    vendor: 'azure',
    what: 'the prompt is filtered',
    status: 400,
    body: azure(
      'content_filter',
      "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
      { param: 'prompt', status: 400, innererror: { code: 'ResponsibleAIPolicyViolation' } },
    ),
    kind: 'content-filter',
  },
  {
    vendor: 'azure',
    what: 'the prompt is too long',
    status: 400,
    body: azure('context_length_exceeded', "This model's maximum context length is 16385 tokens."),
    kind: 'context-window',
  },
  {
    vendor: 'azure',
    what: 'the key is wrong',
    status: 401,
    body: azure('401', 'Access denied due to invalid subscription key or wrong API endpoint.'),
    kind: 'invalid-key',
  },
  {
    vendor: 'azure',
    what: 'the quota of the subscription is used up',
    status: 403,
    body: {
      statusCode: 403,
      message: 'Out of call volume quota. Quota will be replenished in 11.02:00:00.',
    },
    kind: 'quota-exhausted',
  },
  {
    vendor: 'azure',
    what: 'the deployment does not exist',
    status: 404,
    body: azure('DeploymentNotFound', 'The API deployment for this resource does not exist.'),
    kind: 'bad-request',
  },
  {
    vendor: 'azure',
    what: 'the service is overloaded',
    status: 503,
    body: azure('ServiceUnavailable', 'The service is temporarily unable to process your request.'),
    kind: 'overloaded',
  },
  {
    vendor: 'gemini',
    what: 'the quota of a minute is used up',
    status: 429,
    body: gemini(429, 'RESOURCE_EXHAUSTED', 'You exceeded your current quota.', [
      quotaFailure('GenerateContentInputTokensPerModelPerMinute-FreeTier'),
      retryInfo('34.074824224s'),
    ]),
    kind: 'rate-limited',
    retryAfterMs: 34_075,
  },
  {
    vendor: 'gemini',
    what: 'the quota of the day is used up',
    status: 429,
    body: gemini(429, 'RESOURCE_EXHAUSTED', 'You exceeded your current quota.', [
      quotaFailure('GenerateRequestsPerDayPerProjectPerModel-FreeTier'),
      retryInfo('34s'),
    ]),
    kind: 'quota-exhausted',
    retryAfterMs: UNTIL_MIDNIGHT_MS,
    perModel: true,
  },
  {
    vendor: 'gemini',
    what: 'the quota of the day for all models is used up',
    status: 429,
    body: gemini(429, 'RESOURCE_EXHAUSTED', 'You exceeded your current quota.', [
      quotaFailure('GenerateRequestsPerDayPerProject'),
    ]),
    kind: 'quota-exhausted',
    retryAfterMs: UNTIL_MIDNIGHT_MS,
  },
  {
    vendor: 'gemini',
    what: 'a streamed request gets its error in an array',
    status: 429,
    body: [gemini(429, 'RESOURCE_EXHAUSTED', 'Resource has been exhausted.', [retryInfo('3s')])],
    kind: 'rate-limited',
    retryAfterMs: 3_000,
  },
  {
    vendor: 'gemini',
    what: 'the key is wrong, with status 400',
    status: 400,
    body: gemini(400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.', [
      errorInfo('API_KEY_INVALID'),
    ]),
    kind: 'invalid-key',
  },
  {
    vendor: 'gemini',
    what: 'the key has leaked',
    status: 403,
    body: gemini(
      403,
      'PERMISSION_DENIED',
      'Your API key was reported as leaked. Please use another API key.',
    ),
    kind: 'invalid-key',
  },
  {
    vendor: 'gemini',
    what: 'the key has no access',
    status: 403,
    body: gemini(403, 'PERMISSION_DENIED', "Your API key doesn't have the required permissions."),
    kind: 'bad-request',
  },
  {
    vendor: 'gemini',
    what: 'the prompt is too long',
    status: 400,
    body: gemini(
      400,
      'INVALID_ARGUMENT',
      'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
    ),
    kind: 'context-window',
  },
  {
    vendor: 'gemini',
    what: 'the request is malformed',
    status: 400,
    body: gemini(400, 'INVALID_ARGUMENT', 'Invalid value at contents.'),
    kind: 'bad-request',
  },
  {
    vendor: 'gemini',
    what: 'the model is overloaded',
    status: 503,
    body: gemini(503, 'UNAVAILABLE', 'The model is overloaded. Please try again later.'),
    kind: 'overloaded',
  },
  {
    vendor: 'gemini',
    what: 'the server failed',
    status: 500,
    body: gemini(500, 'INTERNAL', 'An internal error has occurred.'),
    kind: 'server',
  },
]

describe('errors by kind', () => {
  it.each(FIXTURES)(
    '$vendor: when $what, the answer is $kind',
    ({ vendor, status, headers = {}, body, kind, retryAfterMs, perModel }) => {
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      const failure = readFailure(TABLES[vendor], { status, headers, body: text }, NOW_MS)
      expect(failure).toEqual({
        kind,
        ...(retryAfterMs !== undefined && { retryAfterMs }),
        ...(perModel && { perModel }),
      })
    },
  )

  it('every body that is no error object is judged by its status', () => {
    for (const table of Object.values(TABLES)) {
      for (const body of [
        '',
        'null',
        '[]',
        '5',
        '{"error":null}',
        '{"error":"no"}',
        '{"error":[1]}',
      ]) {
        const kindOf = (status: number) => readFailure(table, { status, headers: {}, body }, 0).kind
        expect(kindOf(401)).toBe('invalid-key')
        expect(kindOf(402)).toBe('quota-exhausted')
        expect(kindOf(418)).toBe('bad-request')
        expect(kindOf(429)).toBe('rate-limited')
        expect(kindOf(504)).toBe('server')
        expect(kindOf(529)).toBe('overloaded')
      }
    }
  })
})
