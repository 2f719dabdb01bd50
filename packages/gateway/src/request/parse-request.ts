/**
 * Reads a request's body as far as the gateway needs it: to choose a route and a lane, to estimate the cost,
 * and to replace the model. A body that must be read and cannot be is refused, never forwarded unread.
 */
import { isUtf8 } from 'node:buffer'
import { NO_PROMPT, PromptEstimate } from 'spillway/internal'
import type {
  Protocol,
  RequestAddress,
  RequestFacts,
  RequestFormat,
} from '../protocols/protocol.js'
import { RequestError } from '../response/errors.js'
import {
  type BodyLimits,
  holdDecoded,
  holdOrStream,
  type RequestBody,
  tooLarge,
} from './body/body.js'
import type { ByteList } from './body/byte-list.js'
import { decoderFor, isJsonType, parseContentType } from './body/content-type.js'
import { JsonFieldReader, JsonSyntaxError } from './body/json-fields.js'
import type { JsonField, JsonObject } from './body/json-object.js'
import { type ClientRequest, hasBody } from './client-http.js'

export interface ParsedRequest {
  readonly body: RequestBody
  readonly facts: RequestFacts
  /** The body as it was read. Undefined if there is none, or it is forwarded unread. */
  readonly json: JsonObject | undefined
  /** It has a body that was not read, although the format of the protocol is known. */
  readonly isUnread: boolean
}

export interface ParseOptions extends RequestAddress {
  readonly protocol: Protocol
  /**
   * A route on this path is chosen by model, or a target replaces the model, or a limit counts tokens: bodies
   * that cannot be read are refused on every path.
   */
  readonly contentDecides: boolean
  readonly limits: BodyLimits
  /** Called before the body is read, which a client may be waiting for. */
  onReading?(): void
  /** Called with the size of each chunk that arrives. */
  onReceived?: ((bytes: number) => void) | undefined
  /** Called with the size of each chunk before it is held in memory. May throw. */
  onHeld?: ((bytes: number) => void) | undefined
  /** Called when the client's side of a streamed body fails. */
  onFault(error: unknown): void
}

const NO_FACTS: RequestFacts = {
  model: undefined,
  streamed: false,
  prompt: NO_PROMPT,
  maxTokens: undefined,
  answers: 1,
}
const MAX_MODEL_LENGTH = 200
const LONE_SURROGATE = /\p{Surrogate}/u
const UTF_8: ReadonlySet<string | undefined> = new Set([undefined, 'utf-8', 'utf8'])
/** Objects of Gemini. Their fields are listed separately, so a listed name has a value that is no object. */
const CONFIGS: ReadonlySet<string> = new Set(['generationConfig', 'generation_config'])
const METHODS_WITH_BODY: ReadonlySet<string | undefined> = new Set(['POST', 'PUT', 'PATCH'])

/** Throws or rejects if the request is refused. */
export function parseRequest(
  request: ClientRequest,
  options: ParseOptions,
): Promise<ParsedRequest> {
  const { format } = options.protocol
  const isRead = format !== undefined && hasBody(request) && mustRead(request, format, options)
  return isRead ? readJson(request, format, options) : holdUnread(request, format, options)
}

async function holdUnread(
  request: ClientRequest,
  format: RequestFormat | undefined,
  { path, limits, onFault, onReading, onReceived, onHeld }: ParseOptions,
): Promise<ParsedRequest> {
  checkLength(request, limits)
  onReading?.()
  const { keepBytes, maxBytes } = limits
  const body = await holdOrStream(request, { keepBytes, maxBytes, onReceived, onHeld }, onFault)
  const isEmpty = body.kind === 'held' && body.bytes.length === 0
  const needsBody = METHODS_WITH_BODY.has(request.method) && format?.bodyOn(path) === 'json'
  if (isEmpty && needsBody) throw invalid('the body is empty')
  const isUnread = format !== undefined && !isEmpty
  return { body, facts: factsOnPath(format, path), json: undefined, isUnread }
}

/** The result for a request whose body is not read. */
function factsOnPath(format: RequestFormat | undefined, path: string): RequestFacts {
  const model = format?.modelIn(path)
  return model === undefined ? NO_FACTS : { ...NO_FACTS, model }
}

/** A body that is announced to be too large is refused before it arrives. */
function checkLength({ headers }: ClientRequest, { maxBytes }: BodyLimits): void {
  if (Number(headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes)
}

/** False: it is forwarded unread. Throws if it may not be, and cannot be read either. */
function mustRead(
  { headers }: ClientRequest,
  format: RequestFormat,
  { path, contentDecides }: ParseOptions,
): boolean {
  const expected = format.bodyOn(path)
  const header = headers['content-type'] ?? ''
  const type = header.trim() === '' ? undefined : parseContentType(header)
  const isMalformed = type === undefined && header.trim() !== ''
  const mediaType = type?.mediaType
  const isJson = mediaType !== undefined && isJsonType(mediaType)
  // Without a type, or with the one that fetch sends for text, it may still be JSON.
  const mayBeJson = !isMalformed && (mediaType === undefined || mediaType === 'text/plain')
  const takesForm = expected === 'form' || expected === 'file'
  if (takesForm && mediaType === 'multipart/form-data') return false
  if (expected !== 'json' && !contentDecides && !isJson) return false
  if (!isJson && !mayBeJson) throw unsupportedType(takesForm)
  if (!UTF_8.has(type?.charset)) throw unsupportedCharset()
  return true
}

function readJson(
  request: ClientRequest,
  format: RequestFormat,
  { path, query, limits, onReading, onReceived, onHeld }: ParseOptions,
): Promise<ParsedRequest> {
  const decoder = decoderFor(request.headers['content-encoding'])
  checkLength(request, limits)
  const prompt = new PromptEstimate()
  const utf8 = new Utf8Check()
  const reader = new JsonFieldReader(format.fields, prompt)
  const onChunk = (chunk: Buffer) => {
    if (!utf8.push(chunk)) throw notUtf8()
    asInvalidBody(() => reader.push(chunk))
  }
  const finish = (bytes: ByteList): ParsedRequest => {
    const body = { kind: 'held', bytes } as const
    if (bytes.length === 0 && format.bodyOn(path) !== 'json') {
      return { body, facts: NO_FACTS, json: undefined, isUnread: false }
    }
    if (!utf8.end()) throw notUtf8()
    const json = asInvalidBody(() => reader.end())
    const pathModel = format.modelIn(path)
    if (pathModel !== undefined) checkModel(pathModel)
    const values = checked(json.fields, pathModel !== undefined)
    prompt.readWith(bytes.sampler())
    const facts = format.read(values, prompt, { path, query })
    return { body, facts, json, isUnread: false }
  }
  onReading?.()
  const { maxBytes } = limits
  return holdDecoded(request, decoder, { maxBytes, onReceived, onHeld }, onChunk, finish)
}

/**
 * The values of the fields that decide route and cost, after checking their types. `modelInPath`: the vendor ignores the
 * model in the body.
 */
function checked(
  fields: ReadonlyMap<string, JsonField>,
  modelInPath: boolean,
): ReadonlyMap<string, unknown> {
  const values = new Map<string, unknown>()
  for (const [name, { value }] of fields) {
    if (value === null || (modelInPath && name === 'model')) continue
    if (name === 'model') checkModel(value)
    else if (name === 'stream') checkType(name, value, 'boolean', 'true or false')
    else if (CONFIGS.has(name)) throw invalid(`${name}: must be an object`)
    else if (name !== 'stream_options') checkType(name, value, 'number', 'a number')
    values.set(name, value)
  }
  return values
}

/** The model becomes the name of a lane, a label and a part of headers. */
function checkModel(model: unknown): void {
  const isName = typeof model === 'string' && model !== '' && model.length <= MAX_MODEL_LENGTH
  // A lone surrogate has no UTF-8 form, so the vendor could read another name.
  if (isName && !LONE_SURROGATE.test(model)) return
  throw invalid(`model: must be a string of 1 to ${MAX_MODEL_LENGTH} characters`)
}

/** Some vendors convert `"true"` or `"100"`, and would do something else than was decided here. */
function checkType(name: string, value: unknown, type: string, expected: string): void {
  if (typeof value !== type) throw invalid(`${name}: must be ${expected}`)
}

function asInvalidBody<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw error instanceof JsonSyntaxError ? invalid(error.message) : error
  }
}

function invalid(message: string): RequestError {
  return new RequestError({ status: 400, code: 'INVALID_BODY', message })
}

function notUtf8(): RequestError {
  return invalid('the body is not valid UTF-8')
}

function unsupportedType(takesForm: boolean): RequestError {
  const types = takesForm ? 'application/json or multipart/form-data' : 'application/json'
  return new RequestError({
    status: 415,
    code: 'UNSUPPORTED_MEDIA_TYPE',
    message: `content-type: must be ${types} on this path`,
  })
}

function unsupportedCharset(): RequestError {
  const message = 'content-type: the charset must be utf-8'
  return new RequestError({ status: 415, code: 'UNSUPPORTED_MEDIA_TYPE', message })
}

const EMPTY = Buffer.alloc(0)
/** The longest character has four bytes, so at most three of them can be missing their end. */
const MAX_CUT_BYTES = 3

/** Checks that a body which arrives in chunks is valid UTF-8. */
export class Utf8Check {
  /** The beginning of a character whose end is in the next chunk. */
  #cut: Buffer = EMPTY

  /** False if the bytes so far are not the beginning of valid UTF-8. */
  push(chunk: Buffer): boolean {
    const bytes = this.#cut.length === 0 ? chunk : Buffer.concat([this.#cut, chunk])
    const end = endOfWholeCharacters(bytes)
    // A copy: a slice would keep the whole chunk in memory.
    this.#cut = end === bytes.length ? EMPTY : Buffer.from(bytes.subarray(end))
    return isUtf8(bytes.subarray(0, end))
  }

  /** False if the last character is incomplete. */
  end(): boolean {
    return this.#cut.length === 0
  }
}

/** Where the last character begins if its end is missing; otherwise the length of `bytes`. */
function endOfWholeCharacters(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(MAX_CUT_BYTES, bytes.length); back++) {
    const byte = bytes[bytes.length - back] as number
    if (byte < 0x80) break
    if (byte < 0xc0) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
    return length > back ? bytes.length - back : bytes.length
  }
  return bytes.length
}
