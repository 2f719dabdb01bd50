/** Anthropic's endpoint for messages. */
import { fixedText, type Output, type OutputRequest, outputOf } from '../content/output.js'
import { markedPartsOf } from '../content/prompt-cache.js'
import { countTokens } from '../content/tokens.js'
import {
  type Answer,
  type Endpoint,
  type EndpointRequest,
  type EventWriter,
  type Failure,
  json,
} from '../dialect.js'
import { failure, invalid } from './errors.js'

type Body = Readonly<Record<string, unknown>>

export const messages: Endpoint = {
  method: 'POST',
  path: '/v1/messages',
  read(request) {
    const read = readBody(request)
    if ('status' in read) return read
    const { body } = read
    if (typeof body.max_tokens !== 'number') return invalid('max_tokens: Field required')
    const output = outputOf(outputRequest(body))
    return {
      model: String(body.model),
      streamed: body.stream === true,
      promptTokens: countTokens(body.messages, body.system),
      prompt: {
        parts: markedPartsOf(body.system, body.messages as unknown[]),
        caching: 'marked',
      },
      maxTokens: body.max_tokens,
      text: fixedText(output),
      reply: {
        whole: (answer) =>
          json({
            ...message(answer),
            content: [wholeBlock(answer, output)],
            ...stop(answer, output),
            usage: usageOf(answer, answer.tokens),
          }),
        events: events(output),
      },
    }
  },
}

export const countMessageTokens: Endpoint = {
  method: 'POST',
  path: '/v1/messages/count_tokens',
  read(request) {
    const read = readBody(request)
    if ('status' in read) return read
    const { body } = read
    return json({ input_tokens: countTokens(body.messages, body.system) })
  },
}

function readBody({ body, headers }: EndpointRequest): { body: Body } | Failure {
  if (headers['anthropic-version'] === undefined) {
    return invalid('anthropic-version: header is required')
  }
  if (typeof body !== 'object' || body === null) {
    return invalid('The request body is not valid JSON')
  }
  const { model, messages } = body as Body
  if (typeof model !== 'string' || model === '') return invalid('model: Field required')
  if (!Array.isArray(messages)) return invalid('messages: Field required')
  return { body: body as Body }
}

function outputRequest({ messages, tools, tool_choice, ...rest }: Body): OutputRequest {
  const last = (messages as unknown[]).at(-1) as { content?: unknown } | undefined
  const parts = Array.isArray(last?.content) ? last.content : []
  const config = rest.output_config as { format?: unknown } | null | undefined
  const format = (config?.format ?? rest.output_format) as { type?: unknown; schema?: unknown }
  return {
    tools: toolsOf(tools),
    choice: choiceOf(tool_choice as { type?: unknown; name?: unknown } | undefined),
    hasResult: parts.some((part) => part?.type === 'tool_result'),
    schema: format?.type === 'json_schema' ? { value: format.schema } : undefined,
  }
}

/** Tools that the vendor runs itself, such as web search, have another type and are never called. */
function toolsOf(tools: unknown): OutputRequest['tools'] {
  return (Array.isArray(tools) ? tools : [])
    .filter((tool) => (tool?.type ?? 'custom') === 'custom' && typeof tool?.name === 'string')
    .map((tool) => ({ name: tool.name, schema: tool.input_schema }))
}

function choiceOf(choice: { type?: unknown; name?: unknown } | undefined): OutputRequest['choice'] {
  if (choice?.type === 'none') return 'none'
  if (choice?.type === 'any') return 'required'
  return choice?.type === 'tool' ? { name: String(choice.name) } : 'auto'
}

function events(output: Output): EventWriter {
  return {
    opening: (answer) => [
      event('message_start', { message: message(answer) }),
      event('content_block_start', { index: 0, content_block: emptyBlock(answer, output) }),
      event('ping', {}),
    ],
    token(answer, index) {
      const text = answer.token(index)
      const delta =
        output.kind === 'tool'
          ? { type: 'input_json_delta', partial_json: text }
          : { type: 'text_delta', text }
      return event('content_block_delta', { index: 0, delta })
    },
    closing: (answer) => [
      event('content_block_stop', { index: 0 }),
      event('message_delta', {
        delta: stop(answer, output),
        usage: { output_tokens: answer.tokens },
      }),
      event('message_stop', {}),
    ],
    breakdown() {
      const { type, message } = failure(529)
      return event('error', { error: { type, message } })
    },
  }
}

/** Every event has its name in the event line and in its data. */
function event(type: string, data: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
}

/** The message before its first token. */
function message(answer: Answer) {
  return {
    id: `msg_mock${answer.number}`,
    type: 'message',
    role: 'assistant',
    model: answer.model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: usageOf(answer, 1),
  }
}

function emptyBlock({ number }: Answer, output: Output) {
  if (output.kind !== 'tool') return { type: 'text', text: '' }
  return { type: 'tool_use', id: `toolu_mock${number}`, name: output.name, input: {} }
}

/** The input of a truncated call is left empty, because a part of it is no JSON. */
function wholeBlock(answer: Answer, output: Output) {
  const block = emptyBlock(answer, output)
  if (output.kind !== 'tool') return { ...block, text: answer.text() }
  return answer.isTruncated ? block : { ...block, input: JSON.parse(output.text) }
}

function stop({ isTruncated }: Answer, { kind }: Output) {
  const reason = isTruncated ? 'max_tokens' : kind === 'tool' ? 'tool_use' : 'end_turn'
  return { stop_reason: reason, stop_sequence: null }
}

/** `input_tokens` excludes tokens that were read from the cache or written to it. */
function usageOf(answer: Answer, outputTokens: number) {
  const { promptTokens, cachedTokens, cacheWriteTokens } = answer
  return {
    input_tokens: promptTokens - cachedTokens - cacheWriteTokens,
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cachedTokens,
    cache_creation: {
      ephemeral_5m_input_tokens: cacheWriteTokens,
      ephemeral_1h_input_tokens: 0,
    },
    output_tokens: outputTokens,
    service_tier: 'standard',
  }
}
