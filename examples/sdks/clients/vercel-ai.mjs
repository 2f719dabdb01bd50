/** The Vercel AI SDK with its providers for OpenAI and Anthropic. */
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { embed, generateText, jsonSchema, Output, stepCountIs, streamText, tool } from 'ai'
import { FORECAST, QUESTION, WEATHER } from '../questions.mjs'

globalThis.AI_SDK_LOG_WARNINGS = false
const maxOutputTokens = 1_000
const noRetries = '`maxRetries: 0` of `generateText` and `streamText`'

/** `modelOf`: the model of a provider by its name. */
function operations(modelOf, retries) {
  const options = { prompt: QUESTION, maxOutputTokens, ...(retries ? {} : { maxRetries: 0 }) }
  return {
    plain: async (name) => (await generateText({ ...options, model: modelOf(name) })).text,
    async streamed(name, { signal, onText } = {}) {
      const model = modelOf(name)
      let failure
      const onError = ({ error }) => {
        failure ??= { error }
      }
      const stream = streamText({ ...options, model, onError, abortSignal: signal })
      let text = ''
      for await (const part of stream.textStream) {
        text += part
        onText?.()
      }
      if (failure !== undefined) throw failure.error
      signal?.throwIfAborted()
      return text
    },
    async tools(name) {
      let input
      const weather = tool({
        inputSchema: jsonSchema(WEATHER),
        execute: async (given) => {
          input = given
          return 'sunny'
        },
      })
      const stopWhen = stepCountIs(3)
      const tools = { weather }
      const { text } = await generateText({ ...options, model: modelOf(name), tools, stopWhen })
      return { input, text }
    },
    async structured(name) {
      const output = Output.object({ schema: jsonSchema(FORECAST) })
      return (await generateText({ ...options, model: modelOf(name), output })).output
    },
  }
}

export const aiOpenai = {
  name: 'ai with @ai-sdk/openai',
  packages: ['ai', '@ai-sdk/openai'],
  protocol: 'openai',
  noRetries,
  create({ url, key, headers, retries }) {
    const provider = createOpenAI({ baseURL: `${url}/v1`, apiKey: key, headers })
    const { streamed } = operations((name) => provider.responses(name), retries)
    return {
      ...operations((name) => provider.chat(name), retries),
      responses: (name) => streamed(name),
      async embeddings(name) {
        const model = provider.embeddingModel(name)
        return (await embed({ model, value: QUESTION, maxRetries: 0 })).embedding.length
      },
    }
  },
}

/** The responses API is the default of the provider. */
export const aiResponses = {
  ...aiOpenai,
  name: 'ai with @ai-sdk/openai (responses)',
  create({ url, key, headers, retries }) {
    const provider = createOpenAI({ baseURL: `${url}/v1`, apiKey: key, headers })
    return operations((name) => provider.responses(name), retries)
  },
}

export const aiAnthropic = {
  name: 'ai with @ai-sdk/anthropic',
  packages: ['ai', '@ai-sdk/anthropic'],
  protocol: 'anthropic',
  noRetries,
  create({ url, key, headers, retries }) {
    const provider = createAnthropic({ baseURL: `${url}/v1`, apiKey: key, headers })
    return operations((name) => provider(name), retries)
  },
}
