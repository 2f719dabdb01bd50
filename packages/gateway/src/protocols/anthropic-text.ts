/** A text as Anthropic's messages API would answer with it, whole or as a stream. */
import type { TextAnswer, TextRequest } from './protocol.js'

const NO_TOKENS = { input_tokens: 0, output_tokens: 0 }

export function anthropicText(
  path: string,
  { text, model, streamed, id }: TextRequest,
): TextAnswer | undefined {
  if (!path.endsWith('/messages')) return undefined
  const message = (content: object[], stop: string | null) => ({
    id: `msg-${id}`,
    type: 'message',
    role: 'assistant',
    model,
    content,
    stop_reason: stop,
    stop_sequence: null,
    usage: NO_TOKENS,
  })
  if (!streamed) {
    const body = message([{ type: 'text', text }], 'end_turn')
    return { type: 'application/json', body: JSON.stringify(body) }
  }
  const events = [
    { type: 'message_start', message: message([], null) },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
    { type: 'content_block_stop', index: 0 },
    {
      type: 'message_delta',
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: 0 },
    },
    { type: 'message_stop' },
  ]
  const body = events.map((each) => `event: ${each.type}\ndata: ${JSON.stringify(each)}\n\n`)
  return { type: 'text/event-stream', body: body.join('') }
}
