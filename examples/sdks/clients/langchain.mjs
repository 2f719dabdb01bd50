/** LangChain with its packages for OpenAI and Anthropic. */
import { ChatAnthropic } from '@langchain/anthropic'
import { HumanMessage, ToolMessage } from '@langchain/core/messages'
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai'
import { FORECAST, QUESTION, WEATHER } from '../questions.mjs'

const noRetries = '`maxRetries: 0` of the model'
const WEATHER_TOOL = { name: 'weather', description: 'The weather.', schema: WEATHER }
const NAMED = { title: 'forecast', ...FORECAST }

/** `chatModel`: a model of LangChain by its name. */
function operations(chatModel) {
  return {
    plain: async (name) => (await chatModel(name).invoke(QUESTION)).text,
    async streamed(name, { signal, onText } = {}) {
      let text = ''
      for await (const chunk of await chatModel(name).stream(QUESTION, { signal })) {
        text += chunk.text
        onText?.()
      }
      signal?.throwIfAborted()
      return text
    },
    async tools(name) {
      const model = chatModel(name).bindTools([WEATHER_TOOL])
      const question = new HumanMessage(QUESTION)
      const first = await model.invoke([question])
      const [call] = first.tool_calls
      const result = new ToolMessage({ content: 'sunny', tool_call_id: call.id })
      const last = await model.invoke([question, first, result])
      return { input: call.args, text: last.text }
    },
    structured: (name) => chatModel(name).withStructuredOutput(NAMED).invoke(QUESTION),
  }
}

export const langchainOpenai = {
  name: '@langchain/openai',
  packages: ['@langchain/openai'],
  protocol: 'openai',
  noRetries,
  create({ url, key, headers, retries }) {
    const options = {
      apiKey: key,
      configuration: { baseURL: `${url}/v1`, defaultHeaders: headers },
      ...(retries ? {} : { maxRetries: 0 }),
    }
    const responding = (model) => new ChatOpenAI({ ...options, model, useResponsesApi: true })
    return {
      ...operations((model) => new ChatOpenAI({ ...options, model })),
      responses: (name) => operations(responding).streamed(name),
      async embeddings(model) {
        return (await new OpenAIEmbeddings({ ...options, model }).embedQuery(QUESTION)).length
      },
    }
  },
}

export const langchainAnthropic = {
  name: '@langchain/anthropic',
  packages: ['@langchain/anthropic'],
  protocol: 'anthropic',
  noRetries,
  create({ url, key, headers, retries }) {
    const options = {
      apiKey: key,
      anthropicApiUrl: url,
      clientOptions: { defaultHeaders: headers },
      ...(retries ? {} : { maxRetries: 0 }),
    }
    return operations((model) => new ChatAnthropic({ ...options, model }))
  },
}
