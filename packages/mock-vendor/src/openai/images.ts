/** OpenAI's endpoints for images. Each image is one white pixel. */
import { countTokens } from '../content/tokens.js'
import {
  type Endpoint,
  type EndpointRequest,
  type Failure,
  json,
  type ParsedRequest,
} from '../dialect.js'
import { failure, missing } from './errors.js'

const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mP8/x8AAwMCAO+ip1sAAAAASUVORK5CYII='
const MAX_IMAGES = 10

export const imageGenerations: Endpoint = {
  method: 'POST',
  path: '/v1/images/generations',
  read: (request) => readImages(request, { needsImage: false }),
}

export const imageEdits: Endpoint = {
  method: 'POST',
  path: '/v1/images/edits',
  read: (request) => readImages(request, { needsImage: true }),
}

export const imageVariations: Endpoint = {
  method: 'POST',
  path: '/v1/images/variations',
  read: (request) => readImages(request, { needsImage: true }),
}

function readImages(
  { body, form }: EndpointRequest,
  { needsImage }: { needsImage: boolean },
): ParsedRequest | Failure {
  const fields = (body ?? {}) as Record<string, unknown>
  const field = (name: string) => form?.text(name) ?? fields[name]
  const model = String(field('model') ?? 'gpt-image-1')
  const prompt = field('prompt')
  if (needsImage && (form?.file('image') ?? form?.file('image[]')) === undefined) {
    return missing('image')
  }
  if (!needsImage && typeof prompt !== 'string') return missing('prompt')
  const count = Number(field('n') ?? 1)
  if (!Number.isInteger(count) || count < 1 || count > MAX_IMAGES) {
    return failure(400, `'n' must be an integer from 1 to ${MAX_IMAGES}.`)
  }
  const promptTokens = countTokens(prompt)
  const url = `data:image/png;base64,${PIXEL}`
  const image = field('response_format') === 'url' ? { url } : { b64_json: PIXEL }
  return {
    model,
    streamed: false,
    promptTokens,
    maxTokens: 0,
    text: '',
    reply: {
      whole: ({ createdMs }) =>
        json({
          created: Math.floor(createdMs / 1_000),
          data: Array.from({ length: count }, () => image),
          usage: { input_tokens: promptTokens, output_tokens: 0, total_tokens: promptTokens },
        }),
    },
  }
}
