/** HTTP clients without support for the vendors' protocols: a program has to read error events of streams itself. */
import axios from 'axios'
import got from 'got'
import { FORECAST, MESSAGES, QUESTION, WEATHER } from '../questions.mjs'

/** `post` returns the parsed answer, `postStream` an iterable of bytes. */
function operations({ post, postStream }) {
  const chat = (body) => post('/v1/chat/completions', { messages: MESSAGES, ...body })
  const contentOf = ({ choices: [{ message }] }) => message.content
  return {
    plain: async (model) => contentOf(await chat({ model })),
    async streamed(model, { signal, onText } = {}) {
      const body = { model, messages: MESSAGES, stream: true }
      let text = ''
      for await (const data of eventsIn(await postStream('/v1/chat/completions', body, signal))) {
        if (data === '[DONE]') return text
        const { error, choices } = JSON.parse(data)
        if (error) throw Object.assign(new Error(error.message), error)
        text += choices[0]?.delta.content ?? ''
        onText?.()
      }
      throw new Error('the stream ended without its last event')
    },
    async tools(model) {
      const tools = [{ type: 'function', function: { name: 'weather', parameters: WEATHER } }]
      const { choices } = await chat({ model, tools })
      const [{ message }] = choices
      const [call] = message.tool_calls
      const result = { role: 'tool', tool_call_id: call.id, content: 'sunny' }
      const text = contentOf(await chat({ model, tools, messages: [...MESSAGES, message, result] }))
      return { input: JSON.parse(call.function.arguments), text }
    },
    async structured(model) {
      const json_schema = { name: 'forecast', schema: FORECAST }
      const answer = await chat({ model, response_format: { type: 'json_schema', json_schema } })
      return JSON.parse(contentOf(answer))
    },
    async embeddings(model) {
      return (await post('/v1/embeddings', { model, input: QUESTION })).data[0].embedding.length
    },
    async responses(model) {
      return (await post('/v1/responses', { model, input: QUESTION })).output[0].content[0].text
    },
  }
}

/** The data of each event. */
async function* eventsIn(bytes) {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of bytes) {
    const events = (rest + decoder.decode(chunk, { stream: true })).split('\n\n')
    rest = events.pop()
    for (const event of events) {
      const data = event.split('\n').find((line) => line.startsWith('data: '))
      if (data !== undefined) yield data.slice('data: '.length)
    }
  }
}

export const axiosClient = {
  name: 'axios',
  packages: ['axios'],
  protocol: 'openai',
  noRetries: 'has no retries',
  create({ url, key, headers }) {
    const client = axios.create({
      baseURL: url,
      headers: { ...headers, authorization: `Bearer ${key}` },
    })
    return operations({
      post: async (path, body) => (await client.post(path, body)).data,
      postStream: async (path, body, signal) =>
        (await client.post(path, body, { responseType: 'stream', signal })).data,
    })
  },
}

export const gotClient = {
  name: 'got',
  packages: ['got'],
  protocol: 'openai',
  noRetries: 'does not retry POST; `retry: { limit: 0 }` for other methods',
  create({ url, key, headers, retries }) {
    const client = got.extend({
      prefixUrl: url,
      headers: { ...headers, authorization: `Bearer ${key}` },
      ...(retries ? {} : { retry: { limit: 0 } }),
    })
    const pathOf = (path) => path.slice(1)
    return operations({
      post: (path, body) => client.post(pathOf(path), { json: body }).json(),
      postStream: async (path, body, signal) =>
        client.stream.post(pathOf(path), { json: body, signal }),
    })
  },
}
