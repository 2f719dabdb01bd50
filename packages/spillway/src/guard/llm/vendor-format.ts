/**
 * Knowledge about the API of an LLM vendor: which requests generate, what they cost, which may be repeated, how usage
 * is reported, and how an error looks to the vendor's SDK. One object per API.
 */
import type { ErrorTable } from './errors/error-table.js'
import type { Prompt } from './estimate/prompt-estimate.js'
import type { UsageFormat } from './usage/usage-format.js'

/** The parts of a request that lanes and limits depend on. */
export interface RequestFacts {
  readonly model: string | undefined
  /** The response is requested as an event stream. */
  readonly streamed: boolean
  /** From which its tokens are estimated. */
  readonly prompt: Prompt
  /** Most tokens each answer may have; undefined if the request sets no limit. */
  readonly maxTokens: number | undefined
  /** How many answers are generated. */
  readonly answers: number
}

/**
 * The body of requests on a path. `json`: they generate from a JSON object. `form`: they generate from a form
 * with files. `file`: they store a file and generate nothing. `any`: unknown.
 */
export type BodyKind = 'json' | 'form' | 'file' | 'any'

/** An error as Spillway reports it to an SDK. */
export interface ReportedError {
  readonly status: number
  /** Such as `CIRCUIT_OPEN`. */
  readonly code: string
  readonly message: string
  readonly requestId?: string | undefined
  /** Whole milliseconds after which a retry makes sense. Absent if unknown. */
  readonly retryAfterMs?: number | undefined
}

/** The fields of a JSON body that are set, by name. `a.b`: the field `b` of the object in `a`. */
export type RequestFields = ReadonlyMap<string, unknown>

/** Where a request is sent, without its host. */
export interface RequestAddress {
  readonly path: string
  /** With its `?`; empty if there is none. */
  readonly query: string
}

/** The APIs that Spillway knows. */
export type LlmProtocol = 'openai' | 'anthropic' | 'gemini' | 'azure'

export interface VendorFormat {
  readonly name: LlmProtocol
  bodyOn(path: string): BodyKind
  /** The vendor charges no tokens for requests on this path, so none are reserved. */
  isFree(path: string): boolean
  /** Repeating a POST on this path without a key has no other effect than to cost twice. */
  isRepeatable(path: string): boolean
  /** The model that a path names. Undefined if the model is in the body. */
  modelIn?(path: string): string | undefined
  /** The path with another model. Only for paths in which `modelIn` finds one. */
  withModel?(path: string, model: string): string
  /** Fields that decide model, cost and streaming. `a.b`: the field `b` of the object in `a`. */
  readonly valueFields: readonly string[]
  /** Fields that the vendor charges as input. */
  readonly contentFields: readonly string[]
  factsOf(fields: RequestFields, prompt: Prompt, address: RequestAddress): RequestFacts
  /** Whether the response is a stream that reports its usage only if the request asks for it. */
  hidesUsage(path: string, fields: RequestFields): boolean
  /** Fields to set so that the response stream reports its usage. */
  usageFields?(fields: RequestFields): Readonly<Record<string, unknown>>
  /** An event that is in the stream only because its usage was requested. */
  isUsageEvent(event: string): boolean
  /** How answers report their tokens. */
  readonly usage: UsageFormat
  /** What answers with an error status mean. */
  readonly errors: ErrorTable
  errorBody(error: ReportedError): { readonly error: object }
}

/** Paths are compared as a vendor may read them: decoded, in any case, with or without a slash at the end. */
export function pathMatches(path: string, pattern: RegExp): boolean {
  let decoded = path
  try {
    decoded = decodeURIComponent(path)
  } catch {
    // Invalid escapes: the path is compared undecoded.
  }
  return pattern.test(decoded.toLowerCase().replace(/\/+$/, ''))
}

/** A number of tokens or answers in a request. Undefined if it is negative, infinite or not a number. */
export function amountIn(value: unknown): number | undefined {
  const counts = typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER
  return counts ? value : undefined
}

/**
 * The largest limit among these fields, because vendors differ in which of them they obey. Undefined if none is set, or
 * one of them is no amount, such as -1, which some vendors take as no limit.
 */
export function largestOf(fields: RequestFields, names: readonly string[]): number | undefined {
  const limits = names.filter((name) => fields.has(name)).map((name) => amountIn(fields.get(name)))
  const known = limits.filter((limit) => limit !== undefined)
  return known.length > 0 && known.length === limits.length ? Math.max(...known) : undefined
}
