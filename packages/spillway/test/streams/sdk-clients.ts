/** The vendors' SDKs behind one interface, with their own retries turned off. */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import type { Fetch } from '../../src/guard/fetch/fetch.js'
import type { SdkErrors } from '../../src/guard/fetch/sdk-errors.js'
import { QUESTION } from './stream-kit.js'

export type ErrorName =
  | 'APIConnectionError'
  | 'APIConnectionTimeoutError'
  | 'APIError'
  | 'APIUserAbortError'
  | 'AuthenticationError'
  | 'BadRequestError'
  | 'InternalServerError'
  | 'RateLimitError'

export interface SdkClient {
  ask(options?: { signal?: AbortSignal }): Promise<string>
  /** `onToken` receives each token as it arrives. */
  stream(options?: { signal?: AbortSignal; onToken?: (text: string) => void }): Promise<string>
  errors: Record<ErrorName, new (...args: never[]) => Error>
}

export interface Sdk {
  name: string
  /** The SDK, which contains its error classes. */
  itself: SdkErrors
  create(url: string, fetch?: Fetch, apiKey?: string): SdkClient
}

export const SDKS: Sdk[] = [
  {
    name: 'openai',
    itself: OpenAI,
    create(url, fetch = globalThis.fetch, apiKey = 'key') {
      const client = new OpenAI({
        baseURL: `${url}/v1`,
        apiKey,
        maxRetries: 0,
        logLevel: 'off',
        fetch,
      })
      const body = { model: 'gpt', messages: QUESTION }
      return {
        errors: OpenAI as never,
        async ask(options) {
          const answer = await client.chat.completions.create(body, options)
          return answer.choices[0]?.message.content ?? ''
        },
        async stream({ onToken, ...options } = {}) {
          const chunks = await client.chat.completions.create({ ...body, stream: true }, options)
          let text = ''
          for await (const chunk of chunks) {
            const token = chunk.choices[0]?.delta.content ?? ''
            text += token
            if (token !== '') onToken?.(text)
          }
          return text
        },
      }
    },
  },
  {
    name: 'anthropic',
    itself: Anthropic,
    create(url, fetch = globalThis.fetch, apiKey = 'key') {
      const client = new Anthropic({
        baseURL: url,
        apiKey,
        maxRetries: 0,
        logLevel: 'off',
        fetch,
      })
      const body = { model: 'claude', max_tokens: 100, messages: QUESTION }
      return {
        errors: Anthropic as never,
        async ask(options) {
          const { content } = await client.messages.create(body, options)
          return content[0]?.type === 'text' ? content[0].text : ''
        },
        async stream({ onToken, ...options } = {}) {
          const events = await client.messages.create({ ...body, stream: true }, options)
          let text = ''
          for await (const event of events) {
            if (event.type !== 'content_block_delta' || event.delta.type !== 'text_delta') continue
            text += event.delta.text
            onToken?.(text)
          }
          return text
        },
      }
    },
  },
]
