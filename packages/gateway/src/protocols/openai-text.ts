/** A text as OpenAI's API would answer with it: chat completions, completions and responses, whole or as a stream. */
import type { TextAnswer, TextRequest } from './protocol.js'

type Json = Record<string, unknown>

const NO_TOKENS = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }

export function openaiText(path: string, request: TextRequest): TextAnswer | undefined {
  if (path.endsWith('/chat/completions')) return completion(request, CHAT)
  if (path.endsWith('/completions')) return completion(request, PLAIN)
  return path.endsWith('/responses') ? response(request) : undefined
}

/** How the two kinds of completions differ. */
interface Kind {
  readonly prefix: string
  readonly object: string
  readonly streamedObject: string
  whole(text: string): Json
  piece(text: string): Json
  readonly nothing: Json
}

const CHAT: Kind = {
  prefix: 'chatcmpl',
  object: 'chat.completion',
  streamedObject: 'chat.completion.chunk',
  whole: (content) => ({ message: { role: 'assistant', content, refusal: null } }),
  piece: (content) => ({ delta: { role: 'assistant', content } }),
  nothing: { delta: {} },
}

const PLAIN: Kind = {
  prefix: 'cmpl',
  object: 'text_completion',
  streamedObject: 'text_completion',
  whole: (text) => ({ text }),
  piece: (text) => ({ text }),
  nothing: { text: '' },
}

function completion(
  { text, model, streamed, id, createdMs, fields }: TextRequest,
  { prefix, object, streamedObject, whole, piece, nothing }: Kind,
): TextAnswer {
  const head = { id: `${prefix}-${id}`, created: seconds(createdMs), model }
  const choice = (part: Json, reason: string | null) => ({
    index: 0,
    ...part,
    logprobs: null,
    finish_reason: reason,
  })
  if (!streamed) {
    const choices = [choice(whole(text), 'stop')]
    return json({ ...head, object, choices, usage: NO_TOKENS })
  }
  const chunk = (choices: Json[], more: Json = {}) =>
    data({ ...head, object: streamedObject, choices, ...more })
  const events = [chunk([choice(piece(text), null)]), chunk([choice(nothing, 'stop')])]
  const options = fields.get('stream_options')?.value as { include_usage?: unknown } | undefined
  if (options?.include_usage === true) events.push(chunk([], { usage: NO_TOKENS }))
  return stream([...events, 'data: [DONE]\n\n'])
}

function response({ text, model, streamed, id, createdMs }: TextRequest): TextAnswer {
  const part = (content: string) => ({ type: 'output_text', text: content, annotations: [] })
  const item = (status: string, content: Json[]) => ({
    id: `msg-${id}`,
    type: 'message',
    role: 'assistant',
    status,
    content,
  })
  const whole = (status: string, output: Json[], usage: Json | null) => ({
    id: `resp-${id}`,
    object: 'response',
    created_at: seconds(createdMs),
    status,
    model,
    output,
    error: null,
    incomplete_details: null,
    usage,
  })
  const usage = { input_tokens: 0, output_tokens: 0, total_tokens: 0 }
  const done = item('completed', [part(text)])
  const completed = whole('completed', [done], usage)
  if (!streamed) return json(completed)
  const at = { item_id: `msg-${id}`, output_index: 0, content_index: 0 }
  const events: Json[] = [
    { type: 'response.created', response: whole('in_progress', [], null) },
    { type: 'response.output_item.added', output_index: 0, item: item('in_progress', []) },
    { type: 'response.content_part.added', ...at, part: part('') },
    { type: 'response.output_text.delta', ...at, delta: text },
    { type: 'response.output_text.done', ...at, text },
    { type: 'response.content_part.done', ...at, part: part(text) },
    { type: 'response.output_item.done', output_index: 0, item: done },
    { type: 'response.completed', response: completed },
  ]
  return stream(
    events.map(
      (each, index) => `event: ${each.type}\n${data({ ...each, sequence_number: index })}`,
    ),
  )
}

function seconds(ms: number): number {
  return Math.floor(ms / 1_000)
}

function data(event: Json): string {
  return `data: ${JSON.stringify(event)}\n\n`
}

function json(body: Json): TextAnswer {
  return { type: 'application/json', body: JSON.stringify(body) }
}

function stream(events: readonly string[]): TextAnswer {
  return { type: 'text/event-stream', body: events.join('') }
}
