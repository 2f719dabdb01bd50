/** A text as the Gemini API would answer with it: whole, as events, or as an array. */
import type { TextAnswer, TextRequest } from './protocol.js'

const NO_TOKENS = { promptTokenCount: 0, candidatesTokenCount: 0, totalTokenCount: 0 }

export function geminiText(
  path: string,
  { text, model, streamed, id }: TextRequest,
): TextAnswer | undefined {
  const isStream = path.endsWith(':streamGenerateContent')
  if (!isStream && !path.endsWith(':generateContent')) return undefined
  const response = {
    candidates: [{ content: { parts: [{ text }], role: 'model' }, finishReason: 'STOP', index: 0 }],
    usageMetadata: NO_TOKENS,
    modelVersion: model,
    responseId: id,
  }
  const json = JSON.stringify(response)
  if (streamed) return { type: 'text/event-stream', body: `data: ${json}\r\n\r\n` }
  // Without `alt=sse` a stream is an array of what the events would have.
  return { type: 'application/json', body: isStream ? `[${json}]` : json }
}
