/** The agents SDK of OpenAI. It uses a client of the package `openai`. */
import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool } from '@openai/agents'
import OpenAI from 'openai'
import { z } from 'zod'
import { QUESTION } from '../questions.mjs'

setTracingDisabled(true)

export const agents = {
  name: '@openai/agents',
  packages: ['@openai/agents'],
  protocol: 'openai',
  noRetries: '`maxRetries: 0` of the `OpenAI` client in `OpenAIProvider`',
  create({ url, key, headers, retries }) {
    const openAIClient = new OpenAI({
      baseURL: `${url}/v1`,
      apiKey: key,
      defaultHeaders: headers,
      ...(retries ? {} : { maxRetries: 0 }),
    })
    const runnerOf = (useResponses) =>
      new Runner({ modelProvider: new OpenAIProvider({ openAIClient, useResponses }) })
    const chat = runnerOf(false)
    const agentOf = (model, more) => new Agent({ name: 'suite', instructions: '', model, ...more })
    return {
      plain: async (model) => (await chat.run(agentOf(model), QUESTION)).finalOutput,
      async streamed(model, { signal, onText } = {}) {
        const result = await chat.run(agentOf(model), QUESTION, { stream: true, signal })
        for await (const _ of result.toTextStream()) onText?.()
        await result.completed
        signal?.throwIfAborted()
        return result.finalOutput
      },
      async tools(model) {
        let input
        const weather = tool({
          name: 'weather',
          description: 'The weather.',
          parameters: z.object({ city: z.string() }),
          execute: async (given) => {
            input = given
            return 'sunny'
          },
        })
        const result = await chat.run(agentOf(model, { tools: [weather] }), QUESTION)
        return { input, text: result.finalOutput }
      },
      async structured(model) {
        const outputType = z.object({ city: z.string(), degrees: z.number() })
        return (await chat.run(agentOf(model, { outputType }), QUESTION)).finalOutput
      },
      async responses(model) {
        return (await runnerOf(true).run(agentOf(model), QUESTION)).finalOutput
      },
    }
  },
}
