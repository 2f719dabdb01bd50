/**
 * Differences between vendors: a dialect has the vendor's errors, keys and limit headers, and a list of endpoints. An
 * endpoint reads a request and returns how to reply to it.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { CacheUse, Prompt } from './content/prompt-cache.js'
import type { ErrorKind } from './error-kinds.js'
import type { FileStore } from './file-store.js'
import type { Form } from './form.js'
import type { Excess, LimitState } from './quota/contract.js'

export interface Dialect {
  readonly name: 'openai' | 'anthropic' | 'gemini' | 'azure'
  readonly requestIdHeader: string
  readonly endpoints: readonly Endpoint[]
  keyOf(headers: IncomingHttpHeaders, query: URLSearchParams): string
  limitHeaders(states: readonly LimitState[], wallMs: number): Record<string, string>
  /** Headers of a 429 with the time to wait. Absent: `retry-after` in whole seconds. */
  retryHeaders?(waitMs: number): Record<string, string>

  failure(status: number, message?: string): Failure
  /** The error that the vendor documents for each kind. */
  readonly failures: Readonly<Record<ErrorKind, Failure>>
  limited(excess: Excess, model: string): Failure
  unauthorized(key: string): Failure
  errorBody(failure: Failure, requestId: string): unknown
}

export interface Endpoint {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** A name in braces matches one segment of the path: `/v1/files/{id}`. */
  readonly path: string
  /** Reads a request, or returns its problem. A payload is sent at once, independent of the knobs. */
  read(request: EndpointRequest): ParsedRequest | Failure | Payload
}

export interface EndpointRequest {
  readonly headers: IncomingHttpHeaders
  /** The parts of the path that the endpoint's path has in braces. */
  readonly params: Readonly<Record<string, string>>
  /** Query of the URL. */
  readonly query: URLSearchParams
  /** The body as JSON; undefined if it is none. */
  readonly body: unknown
  /** The fields of a body with the type `multipart/form-data`. */
  readonly form: Form | undefined
  readonly files: FileStore
  /** Names of the models that the vendor lists. */
  readonly models: readonly string[]
}

export interface ParsedRequest {
  /** Empty: the endpoint has no model, so no limit is charged. */
  readonly model: string
  readonly streamed: boolean
  readonly promptTokens: number
  /** Infinity: not in the request. */
  readonly maxTokens: number
  /** The parts of the prompt that may be cached. Absent: nothing of it is. */
  readonly prompt?: Prompt
  /** Text of the response, for example JSON. Undefined: as many numbers as the knobs specify. */
  readonly text?: string | undefined
  readonly reply: Reply
}

/** The text of a response, and the fields that precede it. */
export interface Answer extends CacheUse {
  readonly model: string
  readonly promptTokens: number
  readonly number: number
  readonly createdMs: number
  /** Tokens of `text`. */
  readonly tokens: number
  /** Whether the response ended because of the request's token limit. */
  readonly isTruncated: boolean
  /** The text of a token. */
  token(index: number): string
  text(): string
}

/** Writes the response to one request. */
export interface Reply {
  /** The response in one piece. */
  whole(answer: Answer): Payload
  /** The response as events. Undefined: the endpoint does not stream. */
  readonly events?: EventWriter | undefined
}

export interface EventWriter {
  /** The events before the tokens, for each token, and after them. */
  opening(answer: Answer): string[]
  token(answer: Answer, index: number): string
  closing(answer: Answer): string[]
  /** The event of a stream that fails after it began. */
  breakdown(answer: Answer): string
}

export interface Failure {
  readonly status: number
  readonly type: string
  readonly message: string
  readonly param?: string | undefined
  readonly code?: string | undefined
  /** Gemini: `details`. Azure: `innererror`. */
  readonly details?: object | undefined
  /** The whole body, if it is not one of an error. */
  readonly body?: unknown
}

/** The body of a response with status 200. */
export interface Payload {
  readonly contentType: string
  readonly body: string | Buffer
}

export function json(value: unknown): Payload {
  return { contentType: 'application/json', body: JSON.stringify(value) }
}

export function isFailure(value: ParsedRequest | Failure | Payload): value is Failure {
  return 'status' in value
}

export function isPayload(value: ParsedRequest | Failure | Payload): value is Payload {
  return 'contentType' in value
}

/** An endpoint of a path, with the values of the parts in braces. */
export function findEndpoint(
  { endpoints }: Dialect,
  { method, path }: { method: string; path: string },
): { endpoint: Endpoint; params: Record<string, string> } | undefined {
  for (const endpoint of endpoints) {
    if (endpoint.method !== method) continue
    const params = matchPath(endpoint.path, path)
    if (params !== undefined) return { endpoint, params }
  }
  return undefined
}

const patterns = new Map<string, RegExp>()

function matchPath(template: string, path: string): Record<string, string> | undefined {
  if (!template.includes('{')) return template === path ? {} : undefined
  let pattern = patterns.get(template)
  if (pattern === undefined) {
    const literal = template.replace(/[.*+?^$()|[\]\\]/g, '\\$&')
    pattern = new RegExp(`^${literal.replace(/\{(\w+)\}/g, '(?<$1>[^/]+?)')}$`)
    patterns.set(template, pattern)
  }
  return pattern.exec(path)?.groups
}
