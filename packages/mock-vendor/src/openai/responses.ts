/** OpenAI's endpoint for responses. */
import { fixedText, type Output, type OutputRequest, outputOf } from '../content/output.js'
import { partsOf } from '../content/prompt-cache.js'
import { countTokens } from '../content/tokens.js'
import { type Answer, type Endpoint, type EventWriter, json } from '../dialect.js'
import { failure, missing, unreadable } from './errors.js'
import { choiceOf, functionsOf, schemaOf } from './tools.js'

type Request = Readonly<Record<string, unknown>>

export const responses: Endpoint = {
  method: 'POST',
  path: '/v1/responses',
  read({ body }) {
    if (typeof body !== 'object' || body === null) return unreadable
    const request = body as Request
    const { model, input, instructions, stream, max_output_tokens } = request
    if (typeof model !== 'string' || model === '') return missing('model')
    if (typeof input !== 'string' && !Array.isArray(input)) return missing('input')
    const output = outputOf(outputRequest(request))
    return {
      model,
      streamed: stream === true,
      promptTokens: countTokens(input, instructions),
      prompt: { parts: partsOf(instructions, input), caching: 'automatic' },
      maxTokens:
        typeof max_output_tokens === 'number' ? max_output_tokens : Number.POSITIVE_INFINITY,
      text: fixedText(output),
      reply: {
        whole: (answer) => json(finished(answer, { request, output })),
        events: events({ request, output }),
      },
    }
  },
}

interface Context {
  readonly request: Request
  readonly output: Output
}

function outputRequest({ input, tools, tool_choice, text }: Request): OutputRequest {
  const { format } = (text ?? {}) as { format?: { type?: unknown; schema?: unknown } }
  const last = Array.isArray(input) ? input.at(-1) : undefined
  return {
    tools: functionsOf(tools, undefined),
    choice: choiceOf(tool_choice, undefined),
    hasResult: (last as { type?: unknown } | undefined)?.type === 'function_call_output',
    schema: schemaOf(format?.type, format?.schema),
  }
}

/** Events are numbered, and name their item: one message or one function call. */
function events(context: Context): EventWriter {
  const { output } = context
  let number = 0
  const event = (type: string, data: object) => {
    const numbered = { type, sequence_number: number++, ...data }
    return `event: ${type}\ndata: ${JSON.stringify(numbered)}\n\n`
  }
  const place = (answer: Answer) => ({ item_id: itemId(answer, output), output_index: 0 })
  const part = (answer: Answer) => ({ ...place(answer), content_index: 0 })
  return {
    opening(answer) {
      const response = { ...base(answer, context.request), status: 'in_progress' }
      const item = itemOf(answer, { output, text: '', status: 'in_progress' })
      const opened = [
        event('response.created', { response }),
        event('response.in_progress', { response }),
        event('response.output_item.added', { output_index: 0, item }),
      ]
      if (output.kind === 'tool') return opened
      const empty = { ...part(answer), part: textPart('') }
      return [...opened, event('response.content_part.added', empty)]
    },
    token(answer, index) {
      const delta = answer.token(index)
      return output.kind === 'tool'
        ? event('response.function_call_arguments.delta', { ...place(answer), delta })
        : event('response.output_text.delta', { ...part(answer), delta, logprobs: [] })
    },
    closing(answer) {
      const text = answer.text()
      const response = finished(answer, context)
      const done =
        output.kind === 'tool'
          ? [event('response.function_call_arguments.done', { ...place(answer), arguments: text })]
          : [
              event('response.output_text.done', { ...part(answer), text, logprobs: [] }),
              event('response.content_part.done', { ...part(answer), part: textPart(text) }),
            ]
      return [
        ...done,
        event('response.output_item.done', { output_index: 0, item: response.output[0] }),
        event(`response.${response.status}`, { response }),
      ]
    },
    breakdown() {
      const { message, type } = failure(500)
      return event('error', { code: type, message, param: null })
    },
  }
}

function finished(answer: Answer, { request, output }: Context) {
  const status = answer.isTruncated ? 'incomplete' : 'completed'
  return {
    ...base(answer, request),
    status,
    incomplete_details: answer.isTruncated ? { reason: 'max_output_tokens' } : null,
    output: [itemOf(answer, { output, text: answer.text(), status })],
    usage: {
      input_tokens: answer.promptTokens,
      input_tokens_details: { cached_tokens: answer.cachedTokens },
      output_tokens: answer.tokens,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: answer.promptTokens + answer.tokens,
    },
  }
}

/** A response before its first token. */
function base({ number, createdMs, model }: Answer, request: Request) {
  return {
    id: `resp_mock${number}`,
    object: 'response',
    created_at: Math.floor(createdMs / 1_000),
    background: false,
    error: null,
    incomplete_details: null,
    instructions: request.instructions ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    model,
    output: [] as object[],
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    previous_response_id: request.previous_response_id ?? null,
    reasoning: { effort: null, summary: null },
    service_tier: 'default',
    store: request.store ?? true,
    temperature: request.temperature ?? 1,
    text: request.text ?? { format: { type: 'text' } },
    tool_choice: request.tool_choice ?? 'auto',
    tools: request.tools ?? [],
    top_p: request.top_p ?? 1,
    truncation: 'disabled',
    usage: null as object | null,
    metadata: request.metadata ?? {},
  }
}

function itemId({ number }: Answer, { kind }: Output): string {
  return kind === 'tool' ? `fc_mock${number}` : `msg_mock${number}`
}

function itemOf(
  answer: Answer,
  { output, text, status }: { output: Output; text: string; status: string },
): object {
  const id = itemId(answer, output)
  if (output.kind === 'tool') {
    const call_id = `call_mock${answer.number}`
    return { id, type: 'function_call', status, call_id, name: output.name, arguments: text }
  }
  const content = status === 'in_progress' ? [] : [textPart(text)]
  return { id, type: 'message', status, role: 'assistant', content }
}

function textPart(text: string) {
  return { type: 'output_text', text, annotations: [], logprobs: [] }
}
