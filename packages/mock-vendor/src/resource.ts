/** Requests about a resource, such as a file: no model, no tokens, no limits. */
import type { Answer, ParsedRequest, Payload } from './dialect.js'

export function resource(whole: (answer: Answer) => Payload): ParsedRequest {
  return {
    model: '',
    streamed: false,
    promptTokens: 0,
    maxTokens: 0,
    text: '',
    reply: { whole },
  }
}
