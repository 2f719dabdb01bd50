/** Cases of the Anthropic SDK. */
import Anthropic from '@anthropic-ai/sdk'
import { FORECAST, MESSAGES, WEATHER } from '../questions.mjs'

export const anthropic = {
  name: '@anthropic-ai/sdk',
  packages: ['@anthropic-ai/sdk'],
  protocol: 'anthropic',
  noRetries: '`new Anthropic({ maxRetries: 0 })`',
  create({ url, key, headers, retries }) {
    const client = new Anthropic({
      baseURL: url,
      apiKey: key,
      defaultHeaders: headers,
      ...(retries ? {} : { maxRetries: 0 }),
    })
    const body = { max_tokens: 1_000, messages: MESSAGES }
    const textOf = ({ content }) => content.map(({ text = '' }) => text).join('')
    return {
      plain: async (model) => textOf(await client.messages.create({ ...body, model })),
      async streamed(model, { signal, onText } = {}) {
        const stream = client.messages.stream({ ...body, model }, { signal })
        if (onText !== undefined) stream.on('text', onText)
        return textOf(await stream.finalMessage())
      },
      async tools(model) {
        const tools = [{ name: 'weather', input_schema: WEATHER }]
        const { content } = await client.messages.create({ ...body, model, tools })
        const call = content.find(({ type }) => type === 'tool_use')
        const result = { type: 'tool_result', tool_use_id: call.id, content: 'sunny' }
        const turns = [
          { role: 'assistant', content },
          { role: 'user', content: [result] },
        ]
        const messages = [...MESSAGES, ...turns]
        const last = await client.messages.create({ ...body, model, tools, messages })
        return { input: call.input, text: textOf(last) }
      },
      async structured(model) {
        const output_config = { format: { type: 'json_schema', schema: FORECAST } }
        return JSON.parse(textOf(await client.messages.create({ ...body, model, output_config })))
      },
    }
  },
}
