/** Gemini's `generateContent` and `streamGenerateContent`. */
import {
  fixedText,
  type Output,
  type OutputRequest,
  outputOf,
  type Tool,
} from '../content/output.js'
import { partsOf } from '../content/prompt-cache.js'
import { countTokens } from '../content/tokens.js'
import {
  type Answer,
  type EndpointRequest,
  type EventWriter,
  type Failure,
  json,
  type ParsedRequest,
} from '../dialect.js'
import { errorBody, failure } from './errors.js'

type Body = Readonly<Record<string, unknown>>

export function readGenerate(request: EndpointRequest, isStream: boolean): ParsedRequest | Failure {
  const body = request.body as Body | null | undefined
  if (typeof body !== 'object' || body === null || !Array.isArray(body.contents)) {
    return failure(400, '* GenerateContentRequest.contents: contents is not specified')
  }
  const config = (body.generationConfig ?? {}) as Body
  const { maxOutputTokens } = config
  const system = body.systemInstruction
  const output = outputOf(outputRequest(body, config))
  const asEvents = isStream && request.query.get('alt') === 'sse'
  return {
    model: request.params.model ?? '',
    streamed: asEvents,
    promptTokens: countTokens(textOf(body.contents), textOf(system)),
    maxTokens: typeof maxOutputTokens === 'number' ? maxOutputTokens : Number.POSITIVE_INFINITY,
    prompt: { parts: partsOf(textOf(system), ...body.contents.map(textOf)), caching: 'automatic' },
    text: fixedText(output),
    reply: {
      whole(answer) {
        const whole = response(answer, wholeParts(answer, output), finishReason(answer))
        // Without `alt=sse` a stream is a JSON array of the events' data.
        return json(isStream ? [whole] : whole)
      },
      events: events(output),
    },
  }
}

export function promptTokensOf(body: unknown): number {
  const { contents, content, systemInstruction } = (body ?? {}) as Body
  return countTokens(textOf(contents), textOf(content), textOf(systemInstruction))
}

/** The texts of contents with `parts`, as `countTokens` reads them. */
function textOf(content: unknown): unknown {
  if (Array.isArray(content)) return content.map(textOf)
  if (typeof content !== 'object' || content === null) return content
  return { content: (content as { parts?: unknown }).parts }
}

function outputRequest({ contents, tools, toolConfig }: Body, config: Body): OutputRequest {
  const last = (contents as unknown[]).at(-1) as { parts?: unknown } | undefined
  const parts = Array.isArray(last?.parts) ? last.parts : []
  const calling = (toolConfig as { functionCallingConfig?: { mode?: unknown } } | undefined)
    ?.functionCallingConfig
  const schema = config.responseJsonSchema ?? config.responseSchema
  const isJson = config.responseMimeType === 'application/json'
  return {
    tools: toolsOf(tools),
    choice: calling?.mode === 'NONE' ? 'none' : calling?.mode === 'ANY' ? 'required' : 'auto',
    hasResult: parts.some((part) => part?.functionResponse !== undefined),
    schema: isJson ? (schema === undefined ? 'any' : { value: lowerTypes(schema) }) : undefined,
  }
}

function toolsOf(tools: unknown): Tool[] {
  return (Array.isArray(tools) ? tools : [])
    .flatMap((tool) => tool?.functionDeclarations ?? [])
    .map(({ name, parameters, parametersJsonSchema }) => ({
      name: String(name),
      schema: lowerTypes(parametersJsonSchema ?? parameters ?? {}),
    }))
}

/** Google's schemas have types in capitals. */
function lowerTypes(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(lowerTypes)
  if (typeof schema !== 'object' || schema === null) return schema
  return Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [
      name,
      name === 'type' && typeof value === 'string' ? value.toLowerCase() : lowerTypes(value),
    ]),
  )
}

function events(output: Output): EventWriter {
  return {
    opening: () => [],
    token(answer, index) {
      if (output.kind !== 'tool') return event(answer, [{ text: answer.token(index) }])
      // A call is sent in one piece.
      return event(answer, index === answer.tokens - 1 ? wholeParts(answer, output) : [])
    },
    closing: (answer) => [event(answer, [{ text: '' }], finishReason(answer))],
    // Sent without SSE framing: the SDK recognises an error only if the chunk is plain JSON.
    breakdown: () => `${JSON.stringify(errorBody(failure(503)))}\r\n\r\n`,
  }
}

function event(answer: Answer, parts: object[], reason?: string): string {
  return `data: ${JSON.stringify(response(answer, parts, reason))}\r\n\r\n`
}

function wholeParts(answer: Answer, output: Output): object[] {
  if (output.kind !== 'tool') return [{ text: answer.text() }]
  const args = answer.isTruncated ? {} : JSON.parse(output.text)
  return [{ functionCall: { name: output.name, args } }]
}

function response(answer: Answer, parts: object[], finishReason?: string) {
  const { promptTokens, tokens, cachedTokens, model, number } = answer
  return {
    candidates: [
      { content: { parts, role: 'model' }, ...(finishReason && { finishReason }), index: 0 },
    ],
    usageMetadata: {
      promptTokenCount: promptTokens,
      candidatesTokenCount: tokens,
      totalTokenCount: promptTokens + tokens,
      ...(cachedTokens > 0 && { cachedContentTokenCount: cachedTokens }),
      promptTokensDetails: [{ modality: 'TEXT', tokenCount: promptTokens }],
    },
    modelVersion: model,
    responseId: `mock${number}`,
  }
}

function finishReason({ isTruncated }: Answer): string {
  return isTruncated ? 'MAX_TOKENS' : 'STOP'
}
