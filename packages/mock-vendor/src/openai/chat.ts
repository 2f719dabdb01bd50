/** OpenAI's endpoint for chat completions. */
import { fixedText, type Output, type OutputRequest, outputOf } from '../content/output.js'
import { partsOf } from '../content/prompt-cache.js'
import { countTokens } from '../content/tokens.js'
import { type Answer, type Endpoint, type EventWriter, json } from '../dialect.js'
import { errorBody, failure, missing, unreadable } from './errors.js'
import { choiceOf, functionsOf, schemaOf } from './tools.js'

export const chat: Endpoint = {
  method: 'POST',
  path: '/v1/chat/completions',
  read({ body }) {
    if (typeof body !== 'object' || body === null) return unreadable
    const { model, messages, stream, stream_options, ...rest } = body as Record<string, unknown>
    if (typeof model !== 'string' || model === '') return missing('model')
    if (!Array.isArray(messages)) return missing('messages')
    const maxTokens = rest.max_completion_tokens ?? rest.max_tokens
    const usage = (stream_options as { include_usage?: unknown } | null | undefined)?.include_usage
    const output = outputOf(outputRequest(messages, rest))
    return {
      model,
      streamed: stream === true,
      promptTokens: countTokens(messages),
      prompt: { parts: partsOf(messages), caching: 'automatic' },
      maxTokens: typeof maxTokens === 'number' ? maxTokens : Number.POSITIVE_INFINITY,
      text: fixedText(output),
      reply: {
        whole: (answer) => json(completion(answer, output)),
        events: chunks({ output, includeUsage: usage === true }),
      },
    }
  },
}

function outputRequest(messages: unknown[], rest: Record<string, unknown>): OutputRequest {
  const format = rest.response_format as {
    type?: unknown
    json_schema?: { schema?: unknown }
  } | null
  return {
    tools: functionsOf(rest.tools, 'function'),
    choice: choiceOf(rest.tool_choice, 'function'),
    hasResult: (messages.at(-1) as { role?: unknown } | null)?.role === 'tool',
    schema: schemaOf(format?.type, format?.json_schema?.schema),
  }
}

function completion(answer: Answer, output: Output) {
  const isTool = output.kind === 'tool'
  const call = isTool && toolCall(answer, { name: output.name, arguments: answer.text() })
  return {
    id: `chatcmpl-mock${answer.number}`,
    object: 'chat.completion',
    created: Math.floor(answer.createdMs / 1_000),
    model: answer.model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: isTool ? null : answer.text(),
          refusal: null,
          annotations: [],
          ...(call && { tool_calls: [call] }),
        },
        logprobs: null,
        finish_reason: finishReason(answer, output),
      },
    ],
    usage: usageOf(answer),
    service_tier: 'default',
    system_fingerprint: 'fp_mock',
  }
}

function toolCall({ number }: Answer, called: { name: string; arguments: string }) {
  return { id: `call_mock${number}`, type: 'function', function: called }
}

/** If the usage comes at the end, every other chunk has `usage: null`. */
function chunks({ output, includeUsage }: { output: Output; includeUsage: boolean }): EventWriter {
  const chunk = (answer: Answer, delta: object, finish_reason: string | null = null) => {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason }]
    return event({ ...base(answer), choices, ...(includeUsage && { usage: null }) })
  }
  return {
    opening(answer) {
      const role = { role: 'assistant', refusal: null }
      if (output.kind !== 'tool') return [chunk(answer, { ...role, content: '' })]
      const call = { index: 0, ...toolCall(answer, { name: output.name, arguments: '' }) }
      return [chunk(answer, { ...role, content: null, tool_calls: [call] })]
    },
    token(answer, index) {
      const text = answer.token(index)
      if (output.kind !== 'tool') return chunk(answer, { content: text })
      return chunk(answer, { tool_calls: [{ index: 0, function: { arguments: text } }] })
    },
    closing(answer) {
      const events = [chunk(answer, {}, finishReason(answer, output))]
      const usage = usageOf(answer)
      if (includeUsage) events.push(event({ ...base(answer), choices: [], usage }))
      events.push('data: [DONE]\n\n')
      return events
    },
    breakdown: () => event(errorBody(failure(500))),
  }
}

function event(data: unknown): string {
  return `data: ${JSON.stringify(data)}\n\n`
}

function base({ number, createdMs, model }: Answer) {
  return {
    id: `chatcmpl-mock${number}`,
    object: 'chat.completion.chunk',
    created: Math.floor(createdMs / 1_000),
    model,
    service_tier: 'default',
    system_fingerprint: 'fp_mock',
  }
}

function finishReason({ isTruncated }: Answer, { kind }: Output): string {
  if (isTruncated) return 'length'
  return kind === 'tool' ? 'tool_calls' : 'stop'
}

function usageOf({ promptTokens, tokens, cachedTokens }: Answer) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: tokens,
    total_tokens: promptTokens + tokens,
    prompt_tokens_details: { cached_tokens: cachedTokens, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
  }
}
