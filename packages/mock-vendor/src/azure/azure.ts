/** Azure OpenAI: OpenAI's endpoints with the deployment in the path, and Azure's own errors. */

import type { Dialect, Endpoint, Failure } from '../dialect.js'
import type { ErrorKind } from '../error-kinds.js'
import { failures as openaiFailures } from '../openai/errors.js'
import { openai } from '../openai/openai.js'
import { type Excess, type LimitState, remaining, tightest } from '../quota/contract.js'

/** These have the deployment in their path. The others have `model` in the body. */
const DEPLOYED = /^\/v1\/(chat\/completions|completions|embeddings|images\/|audio\/)/

function failure(status: number, message = 'The server had an error.'): Failure {
  return { status, message, type: '', code: String(status) }
}

/** Azure states the time to wait in the message and in headers. */
function exceeded(what: 'call' | 'token', waitMs: number): Failure {
  return failure(
    429,
    'Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-10-21 have exceeded ' +
      `${what} rate limit of your current OpenAI S0 pricing tier. Please retry after ${Math.ceil(waitMs / 1_000)} seconds.`,
  )
}

const INVALID_KEY = failure(
  401,
  'Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an ' +
    'active subscription and use a correct regional API endpoint for your resource.',
)

const SAFE = { filtered: false, severity: 'safe' }

/** Errors of the model are OpenAI's, those of the service Azure's. */
const FAILURES: Readonly<Record<ErrorKind, Failure>> = {
  ...openaiFailures,
  'rate-limited': exceeded('call', 3_000),
  'quota-exhausted': failure(
    403,
    'Out of call volume quota. Quota will be replenished in 10:00:00.',
  ),
  'invalid-key': INVALID_KEY,
  'content-filter': {
    ...failure(
      400,
      "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. " +
        'Please modify your prompt and retry. To learn more about our content filtering policies please read our ' +
        'documentation: https://go.microsoft.com/fwlink/?linkid=2198766',
    ),
    type: 'content_filter',
    param: 'prompt',
    code: 'content_filter',
    details: {
      code: 'ResponsibleAIPolicyViolation',
      content_filter_result: {
        hate: SAFE,
        self_harm: SAFE,
        sexual: SAFE,
        violence: { filtered: true, severity: 'medium' },
      },
    },
  },
  overloaded: failure(
    503,
    'The service is temporarily unable to process your request. Please try again later.',
  ),
  'bad-request': failure(400, 'Invalid request.'),
  server: failure(500),
}

/** `/openai/deployments/{deployment}/…` for `/v1/…`. The deployment is the model. */
function deployed(endpoint: Endpoint): Endpoint {
  const path = endpoint.path.replace('/v1/', '/openai/deployments/{deployment}/')
  return withVersion({
    ...endpoint,
    path,
    read({ body, form, params, ...rest }) {
      const model = params.deployment ?? ''
      const isObject = typeof body === 'object' && body !== null
      return endpoint.read({
        ...rest,
        params,
        body: isObject ? { ...body, model } : body,
        form: form && { ...form, text: (name) => (name === 'model' ? model : form.text(name)) },
      })
    },
  })
}

/** Without `api-version`, Azure responds with 404. */
function withVersion(endpoint: Endpoint): Endpoint {
  return {
    ...endpoint,
    read: (request) =>
      request.query.has('api-version')
        ? endpoint.read(request)
        : failure(404, 'Resource not found'),
  }
}

export const azure: Dialect = {
  name: 'azure',
  requestIdHeader: 'apim-request-id',
  endpoints: [
    ...openai.endpoints.filter(({ path }) => DEPLOYED.test(path)).map(deployed),
    ...openai.endpoints.map((each) => ({ ...each, path: `/openai${each.path}` })),
    ...openai.endpoints
      .filter(({ path }) => path === '/v1/responses' || path.startsWith('/v1/models'))
      .map((each) => withVersion({ ...each, path: each.path.replace('/v1', '/openai') })),
  ],
  keyOf(headers) {
    const key = headers['api-key'] ?? headers.authorization?.replace(/^Bearer /i, '')
    return typeof key === 'string' ? key : ''
  },
  limitHeaders(states: readonly LimitState[]): Record<string, string> {
    const headers: Record<string, string> = {}
    for (const state of tightest(states)) {
      const { unit, limit, resetMs } = state
      if (unit !== 'requests' && unit !== 'tokens') continue
      headers[`x-ratelimit-limit-${unit}`] = String(limit)
      headers[`x-ratelimit-remaining-${unit}`] = String(remaining(state))
      headers[`x-ratelimit-reset-${unit}`] = String(Math.ceil(resetMs / 1_000))
    }
    return headers
  },
  retryHeaders: (waitMs) => ({
    'retry-after-ms': String(Math.ceil(waitMs)),
    'retry-after': String(Math.ceil(waitMs / 1_000)),
  }),
  failure,
  limited: ({ unit, waitMs }: Excess) => exceeded(unit === 'requests' ? 'call' : 'token', waitMs),
  unauthorized: () => INVALID_KEY,
  errorBody: ({ message, code, type, param, details }: Failure) => ({
    error: {
      code,
      message,
      ...(type !== '' && { type: null, param: param ?? null, status: 400 }),
      ...(details && { innererror: details }),
    },
  }),
  failures: FAILURES,
}
