/** OpenAI's embeddings. A text always gets the same vector, of length 1. */
import { countTokens } from '../content/tokens.js'
import { vectorOf } from '../content/vector.js'
import { type Endpoint, json } from '../dialect.js'
import { failure, missing, unreadable } from './errors.js'

const DIMENSIONS = 1_536
const MAX_DIMENSIONS = 16_384
const MAX_INPUTS = 2_048

export const embeddings: Endpoint = {
  method: 'POST',
  path: '/v1/embeddings',
  read({ body }) {
    if (typeof body !== 'object' || body === null) return unreadable
    const { model, input, dimensions, encoding_format } = body as Record<string, unknown>
    if (typeof model !== 'string' || model === '') return missing('model')
    const inputs = inputsOf(input)
    if (inputs.length === 0) return missing('input')
    if (inputs.length > MAX_INPUTS)
      return failure(400, `'input' has more than ${MAX_INPUTS} items.`)
    const length = typeof dimensions === 'number' ? dimensions : DIMENSIONS
    if (!Number.isInteger(length) || length < 1 || length > MAX_DIMENSIONS) {
      return failure(400, `'dimensions' must be an integer from 1 to ${MAX_DIMENSIONS}.`)
    }
    const promptTokens = inputs.reduce<number>((sum, item) => sum + tokensIn(item), 0)
    const write = encoding_format === 'base64' ? base64 : (vector: Float32Array) => [...vector]
    return {
      model,
      streamed: false,
      promptTokens,
      maxTokens: 0,
      text: '',
      reply: {
        whole: () =>
          json({
            object: 'list',
            data: inputs.map((item, index) => ({
              object: 'embedding',
              index,
              embedding: write(vectorOf(JSON.stringify(item), length)),
            })),
            model,
            usage: { prompt_tokens: promptTokens, total_tokens: promptTokens },
          }),
      },
    }
  },
}

/** One text, several texts, the token numbers of one text, or those of several. */
function inputsOf(input: unknown): unknown[] {
  if (typeof input === 'string') return [input]
  if (!Array.isArray(input)) return []
  return input.every((item) => typeof item === 'number') && input.length > 0 ? [input] : input
}

function tokensIn(input: unknown): number {
  return Array.isArray(input) ? input.length : countTokens(input)
}

function base64(vector: Float32Array): string {
  return Buffer.from(vector.buffer).toString('base64')
}
