/**
 * How one family of clients and vendors speaks: where keys stand, what a request asks for, and how an
 * error looks to an SDK. One object for each; nothing else in the gateway knows their formats.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { ProtocolName } from '../config/config.js'
import type { FieldNames, JsonField } from '../request/body/json-fields.js'

/** What routes, lanes and limits need to know of a request. */
export interface RequestFacts {
  readonly model: string | undefined
  /** The response is requested as an event stream. */
  readonly streamed: boolean
  /** Estimated from the length of the prompt. */
  readonly promptTokens: number
  /** Most tokens each answer may have; undefined if the request sets no limit. */
  readonly maxTokens: number | undefined
  /** How many answers are generated. */
  readonly answers: number
}

/**
 * What requests on a path send. `json`: they generate from a JSON object. `form`: they generate from a form with files.
 * `file`: they store a file and generate nothing. `any`: unknown.
 */
export type BodyKind = 'json' | 'form' | 'file' | 'any'

/** How a protocol's JSON bodies are read. */
export interface RequestFormat {
  bodyOn(path: string): BodyKind
  /** The vendor charges no tokens for requests on this path, so none are reserved. */
  isFree(path: string): boolean
  /** Values: what decides route, cost and streaming. Contents: what the vendor charges as input. */
  readonly fields: FieldNames
  /** `values`: those that are set, in their right types. */
  read(values: ReadonlyMap<string, unknown>, promptTokens: number): RequestFacts
}

/** Paths are compared as a vendor may read them: decoded, in any case, with or without a slash at the end. */
export function pathMatches(path: string, pattern: RegExp): boolean {
  let decoded = path
  try {
    decoded = decodeURIComponent(path)
  } catch {
    // It is compared as it is.
  }
  return pattern.test(decoded.toLowerCase().replace(/\/+$/, ''))
}

/** Something that went wrong, to be told to a client. */
export interface Complaint {
  readonly status: number
  /** Such as `CIRCUIT_OPEN`. */
  readonly code: string
  readonly message: string
  readonly requestId: string
}

export interface Protocol {
  readonly name: ProtocolName
  /** The key a client presents, if any. */
  callerKey(headers: IncomingHttpHeaders): string | undefined
  /** The header that carries our key to the vendor. */
  vendorKey(secret: string): readonly [name: string, value: string]
  /** Undefined: bodies are forwarded unread. */
  readonly format?: RequestFormat
  /** Whether the response is a stream that reports no usage unless the request asks for it. */
  hidesUsage(path: string, fields: ReadonlyMap<string, JsonField>): boolean
  /** An event that is in a stream only because we asked what it cost. */
  isUsageEvent(event: string): boolean
  /** Whether a stream that ends with these events lacks its last ones; where it is missing, nobody can tell. */
  isCutOff?(end: string): boolean
  /** Fields to set so that the response stream reports its usage. */
  usageFields?(fields: ReadonlyMap<string, JsonField>): Readonly<Record<string, unknown>>
  readonly errorType: string
  errorBody(complaint: Complaint): string
  /** In the middle of a stream. */
  errorEvent(complaint: Complaint): string
  /** Whether asking twice, by POST and without a key, does no more harm than to cost twice. */
  repeatable(path: string): boolean
}

export function bearer({ authorization }: IncomingHttpHeaders): string | undefined {
  if (authorization === undefined) return undefined
  return authorization.slice(0, 7).toLowerCase() === 'bearer '
    ? authorization.slice(7).trim()
    : undefined
}
