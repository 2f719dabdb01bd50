/** What a request asks for, read from its body: whole if it is kept, its beginning if it is not. */
import type { Asked, Protocol } from '../protocols/protocol.js'
import { RequestError } from './complaint.js'
import type { RequestBody } from './request-body.js'

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

export function readRequest(
  protocol: Protocol,
  body: RequestBody,
  contentType: string | undefined,
  contentLength: string | undefined,
): ReadRequest {
  if (protocol.name === 'http') return { asked: NOTHING_ASKED, json: undefined }
  if (body.kind === 'passing') {
    return {
      asked: readHead(body.head, Number(contentLength ?? body.head.length)),
      json: undefined,
    }
  }
  const json = parse(body.bytes, contentType)
  return { asked: json === undefined ? NOTHING_ASKED : protocol.read(json), json }
}

function parse(bytes: Buffer, contentType = ''): Record<string, unknown> | undefined {
  if (bytes.length === 0) return undefined
  const isJson = contentType.includes('json')
  if (!isJson && bytes[0] !== OPENING_BRACE) return undefined
  try {
    const value: unknown = JSON.parse(bytes.toString())
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>
    }
  } catch {
    if (!isJson) return undefined
  }
  throw new RequestError({
    status: 400,
    code: 'INVALID_BODY',
    message: 'the body is no JSON object',
  })
}

/** Clients write the small fields first, or not; what is not found is not known. */
function readHead(head: Buffer, bytes: number): Asked {
  const text = head.toString('latin1')
  const most = /"max_(?:completion_|output_)?tokens"\s*:\s*(\d+)/.exec(text)?.[1]
  return {
    model: /"model"\s*:\s*"([^"\\]{1,200})"/.exec(text)?.[1],
    streamed: /"stream"\s*:\s*true/.test(text),
    promptTokens: Math.ceil(bytes / BYTES_PER_TOKEN),
    maxTokens: most === undefined ? undefined : Number(most),
  }
}
