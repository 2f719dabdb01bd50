/** Cases of the OpenAI SDK. */
import OpenAI from 'openai'
import { FORECAST, MESSAGES, QUESTION, WEATHER } from '../questions.mjs'

export const openai = {
  name: 'openai',
  packages: ['openai'],
  protocol: 'openai',
  noRetries: '`new OpenAI({ maxRetries: 0 })`',
  create({ url, key, headers, retries }) {
    const client = new OpenAI({
      baseURL: `${url}/v1`,
      apiKey: key,
      defaultHeaders: headers,
      ...(retries ? {} : { maxRetries: 0 }),
    })
    const { completions } = client.chat
    return {
      async plain(model) {
        const answer = await completions.create({ model, messages: MESSAGES })
        return answer.choices[0].message.content
      },
      async streamed(model, { signal, onText } = {}) {
        const body = { model, messages: MESSAGES, stream: true }
        let text = ''
        for await (const { choices } of await completions.create(body, { signal })) {
          text += choices[0]?.delta.content ?? ''
          onText?.()
        }
        return text
      },
      async tools(model) {
        const tools = [{ type: 'function', function: { name: 'weather', parameters: WEATHER } }]
        const first = await completions.create({ model, messages: MESSAGES, tools })
        const { message } = first.choices[0]
        const [call] = message.tool_calls
        const result = { role: 'tool', tool_call_id: call.id, content: 'sunny' }
        const messages = [...MESSAGES, message, result]
        const last = await completions.create({ model, messages, tools })
        return { input: JSON.parse(call.function.arguments), text: last.choices[0].message.content }
      },
      async structured(model) {
        const json_schema = { name: 'forecast', schema: FORECAST, strict: true }
        const response_format = { type: 'json_schema', json_schema }
        const answer = await completions.create({ model, messages: MESSAGES, response_format })
        return JSON.parse(answer.choices[0].message.content)
      },
      async embeddings(model) {
        const { data } = await client.embeddings.create({ model, input: QUESTION })
        return data[0].embedding.length
      },
      async responses(model) {
        const stream = client.responses.stream({ model, input: QUESTION })
        return (await stream.finalResponse()).output_text
      },
    }
  },
}
