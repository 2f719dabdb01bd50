/** Google's Gemini API: API keys and endpoints. */
import { vectorOf } from '../content/vector.js'
import {
  type Dialect,
  type Endpoint,
  type EndpointRequest,
  type Failure,
  json,
  type ParsedRequest,
  type Payload,
} from '../dialect.js'
import { errorBody, failure, failures, limited, unauthorized } from './errors.js'
import { promptTokensOf, readGenerate } from './generate.js'

const VERSIONS = ['v1beta', 'v1', 'v1alpha']
const DIMENSIONS = 3_072

export const gemini: Dialect = {
  name: 'gemini',
  requestIdHeader: 'x-request-id',
  endpoints: VERSIONS.flatMap((version) => [
    method(version, 'generateContent', (request) => readGenerate(request, false)),
    method(version, 'streamGenerateContent', (request) => readGenerate(request, true)),
    method(version, 'embedContent', readEmbed),
    method(version, 'batchEmbedContents', readBatchEmbed),
    method(version, 'countTokens', ({ body }) => {
      const { generateContentRequest } = (body ?? {}) as { generateContentRequest?: unknown }
      return json({ totalTokens: promptTokensOf(generateContentRequest ?? body) })
    }),
    {
      method: 'GET',
      path: `/${version}/models`,
      read: ({ models }) => json({ models: models.map(modelOf) }),
    },
    {
      method: 'GET',
      path: `/${version}/models/{model}`,
      read: ({ models, params: { model = '' } }) =>
        models.includes(model)
          ? json(modelOf(model))
          : failure(404, `models/${model} is not found for API version ${version}.`),
    },
  ]),
  keyOf(headers, query) {
    const key = headers['x-goog-api-key'] ?? query.get('key')
    return typeof key === 'string' ? key : (headers.authorization?.replace(/^Bearer /i, '') ?? '')
  },
  // Google sends no headers about limits.
  limitHeaders: () => ({}),
  retryHeaders: () => ({}),
  failure,
  failures,
  limited,
  unauthorized: () => unauthorized,
  errorBody,
}

function method(
  version: string,
  name: string,
  read: (request: EndpointRequest) => ParsedRequest | Failure | Payload,
): Endpoint {
  return { method: 'POST', path: `/${version}/models/{model}:${name}`, read }
}

function readEmbed({ body, params }: EndpointRequest): ParsedRequest {
  const promptTokens = promptTokensOf(body)
  return embedding(params.model, promptTokens, () => ({ embedding: embed(body) }))
}

function readBatchEmbed({ body, params }: EndpointRequest): ParsedRequest | Failure {
  const { requests } = (body ?? {}) as { requests?: unknown }
  if (!Array.isArray(requests))
    return failure(400, '* BatchEmbedContentsRequest.requests: required')
  const isOther = ({ model }: { model?: unknown }) => model !== `models/${params.model}`
  if (requests.some(isOther)) {
    return failure(400, '* BatchEmbedContentsRequest.requests.model: must be the model of the path')
  }
  const promptTokens = requests.reduce<number>((sum, each) => sum + promptTokensOf(each), 0)
  return embedding(params.model, promptTokens, () => ({ embeddings: requests.map(embed) }))
}

function embedding(model = '', promptTokens: number, whole: () => object): ParsedRequest {
  return {
    model,
    streamed: false,
    promptTokens,
    maxTokens: 0,
    text: '',
    reply: {
      whole: () => json({ ...whole(), usageMetadata: { promptTokenCount: promptTokens } }),
    },
  }
}

function embed(request: unknown): { values: number[] } {
  const { content, outputDimensionality } = (request ?? {}) as Record<string, unknown>
  const length = typeof outputDimensionality === 'number' ? outputDimensionality : DIMENSIONS
  return { values: [...vectorOf(JSON.stringify(content) ?? '', length)] }
}

function modelOf(id: string) {
  return {
    name: `models/${id}`,
    version: '001',
    displayName: id,
    inputTokenLimit: 1_048_576,
    outputTokenLimit: 65_536,
    supportedGenerationMethods: ['generateContent', 'countTokens', 'embedContent'],
  }
}
