/** What a request asks for, read from its body: whole if it is kept, its beginning if it is not. */
import type { Asked, Protocol } from '../protocols/protocol.js'
import { amountIn } from '../tokens/amount.js'
import { RequestError } from './complaint.js'
import type { RequestBody } from './request-body.js'
import { saysModelTwice } from './twice.js'

export interface ReadRequest {
  readonly asked: Asked
  /** The whole body, if it is an object. */
  readonly json: Record<string, unknown> | undefined
}

const NOTHING_ASKED: Asked = {
  model: undefined,
  streamed: false,
  promptTokens: 0,
  maxTokens: undefined,
}
const BYTES_PER_TOKEN = 4
const OPENING_BRACE = 0x7b
const LONGEST_MODEL = 200

export function readRequest(
  protocol: Protocol,
  body: RequestBody,
  contentType: string | undefined,
  contentLength: string | undefined,
): ReadRequest {
  if (protocol.read === undefined) return { asked: NOTHING_ASKED, json: undefined }
  if (body.kind === 'passing') {
    const bytes = Number(contentLength ?? body.head.length)
    const asked = contentType?.includes('json') ? readHead(body.head, bytes) : NOTHING_ASKED
    return { asked, json: undefined }
  }
  const json = parse(body.bytes, contentType)
  if (json === undefined) return { asked: NOTHING_ASKED, json }
  const asked = protocol.read(json)
  checkModel(asked.model)
  return { asked, json }
}

/** It becomes the name of a lane, a label and a part of headers. */
function checkModel(model: string | undefined): void {
  if (model === undefined || (model !== '' && model.length <= LONGEST_MODEL)) return
  throw invalidBody(`model: must be a text of 1 to ${LONGEST_MODEL} characters`)
}

function parse(bytes: Buffer, contentType = ''): Record<string, unknown> | undefined {
  if (bytes.length === 0) return undefined
  const isJson = contentType.includes('json')
  if (!isJson && bytes[0] !== OPENING_BRACE) return undefined
  const text = bytes.toString()
  const value = parseJson(text)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    if (saysModelTwice(text)) throw invalidBody('the body says its model twice')
    return value as Record<string, unknown>
  }
  if (value === undefined && !isJson) return undefined
  throw invalidBody('the body is no JSON object')
}

function invalidBody(message: string): RequestError {
  return new RequestError({ status: 400, code: 'INVALID_BODY', message })
}

/** Clients write the small fields first, or not; what is not found is not known. */
function readHead(head: Buffer, bytes: number): Asked {
  const fields = fieldsIn(head.toString('latin1'))
  const most = fields.get('max_completion_tokens') ?? fields.get('max_tokens')
  const model = fields.get('model')
  checkModel(typeof model === 'string' ? model : undefined)
  return {
    model: typeof model === 'string' ? model : undefined,
    streamed: fields.get('stream') === true,
    promptTokens: Math.ceil(bytes / BYTES_PER_TOKEN),
    maxTokens: amountIn(most),
  }
}

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/gy
const SPACE = /\s*/y

/** The simple fields of the object itself, not of those inside it, as far as the text goes. */
function fieldsIn(text: string): Map<string, unknown> {
  const fields = new Map<string, unknown>()
  let depth = 0
  let name: string | undefined
  let isValue = false
  for (const token of tokensOf(text)) {
    if (token === '{' || token === '[') depth++
    else if (token === '}' || token === ']') depth--
    else if (depth !== 1) continue
    else if (token === ':') isValue = true
    else if (token === ',') isValue = false
    else if (isValue && name !== undefined) fields.set(name, parseJson(token))
    else name = token.startsWith('"') ? String(parseJson(token)) : undefined
  }
  return fields
}

function* tokensOf(text: string): Generator<string> {
  for (let at = 0; at < text.length; ) {
    SPACE.lastIndex = at
    SPACE.exec(text)
    TOKEN.lastIndex = SPACE.lastIndex
    const token = TOKEN.exec(text)?.[0]
    if (token === undefined) return
    at = TOKEN.lastIndex
    yield token
  }
}

/** Nothing, if it is none. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
