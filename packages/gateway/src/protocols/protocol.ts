/**
 * The format of one family of clients and vendors: the place of keys, the fields of requests, and the form of errors.
 * There is one object per protocol, and only they contain such formats.
 */
import type { IncomingHttpHeaders } from 'node:http'
import {
  type BodyKind,
  type ErrorTable,
  type Prompt,
  type RequestAddress,
  type RequestFacts,
  remembered,
  type UsageFormat,
  type VendorFormat,
} from 'spillway/internal'
import type { ProtocolName } from '../config/config.js'
import type { JsonField } from '../request/body/json-object.js'

/** How a protocol's JSON bodies are read. */
export interface RequestFormat {
  bodyOn(path: string): BodyKind
  /** The vendor charges no tokens for requests on this path, so none are reserved. */
  isFree(path: string): boolean
  /** Values decide route, cost and streaming. Contents are charged as input by the vendor. */
  readonly fields: FieldNames
  /** `values`: those that are set, in their right types. */
  read(values: ReadonlyMap<string, unknown>, prompt: Prompt, address: RequestAddress): RequestFacts
  /** The model that a path names. Undefined if the model is in the body. */
  modelIn(path: string): string | undefined
  /** The path with another model. Only for paths with a model, see `modelIn`. */
  withModel(path: string, model: string): string
}

export function requestFormat(format: VendorFormat): RequestFormat {
  const { valueFields, contentFields, bodyOn, isFree, factsOf, modelIn, withModel } = format
  return {
    bodyOn: remembered(bodyOn),
    isFree: remembered(isFree),
    fields: new FieldNames(valueFields, contentFields),
    read: factsOf,
    modelIn: modelIn ?? (() => undefined),
    withModel: withModel ?? ((path) => path),
  }
}

/**
 * The top-level fields to read, and fields of top-level objects (`a.b`). Each may occur once, and only in this
 * spelling.
 */
export class FieldNames {
  readonly #bySpelling = new Map<string, string>()
  /** Top-level objects whose fields are read. */
  readonly #groups = new Set<string>()
  readonly #alike = remembered((name) => this.#bySpelling.get(inUpperCase(name)))
  readonly #contents: ReadonlySet<string>

  /** `values`: fields whose values are wanted. `contents`: fields whose content a visitor receives. */
  constructor(values: readonly string[], contents: readonly string[]) {
    this.#contents = new Set(contents)
    for (const name of [...values, ...contents]) {
      const [group = '', inner] = name.split('.', 2)
      if (inner !== undefined) this.#groups.add(group)
      for (const each of [group, name]) this.#bySpelling.set(inUpperCase(each), each)
    }
  }

  /** The chosen field that this is, in any case. */
  alike(name: string): string | undefined {
    return this.#alike(name)
  }

  isContent(name: string): boolean {
    return this.#contents.has(name)
  }

  isGroup(name: string | undefined): boolean {
    return name !== undefined && this.#groups.has(name)
  }
}

/** As vendors that ignore case compare names: the long s and the Kelvin sign are letters, too. */
function inUpperCase(name: string): string {
  return name.toLowerCase().toUpperCase()
}

/** The values of fields, without their positions. */
export function valuesOf(fields: ReadonlyMap<string, JsonField>): ReadonlyMap<string, unknown> {
  return new Map(Array.from(fields, ([name, { value }]) => [name, value]))
}

/** An error, as a client gets it. */
export interface Complaint {
  readonly status: number
  /** Such as `CIRCUIT_OPEN`. */
  readonly code: string
  readonly message: string
  readonly requestId: string
  /** Whole milliseconds. Also in the body, because an error event in a stream has no headers. */
  readonly retryAfterMs: number | undefined
}

export type { RequestAddress, RequestFacts }

/** A request that is answered with a text of the configuration. */
export interface TextRequest {
  readonly text: string
  readonly model: string
  readonly streamed: boolean
  /** Makes the ids in the answer unique. */
  readonly id: string
  /** The date of the answer. */
  readonly createdMs: number
  readonly fields: ReadonlyMap<string, JsonField>
}

export interface TextAnswer {
  readonly type: string
  readonly body: string
}

export interface Protocol {
  readonly name: ProtocolName
  /** The key a client presents, if any. `query`: of the request's URL, with its `?`. */
  callerKey(headers: IncomingHttpHeaders, query?: string): string | undefined
  /** The query without keys. Undefined: clients send no keys in it. */
  queryWithoutKeys?(query: string): string
  /** The header that carries our key to the vendor. */
  vendorKey(secret: string): readonly [name: string, value: string]
  /** Undefined: bodies are forwarded unread. */
  readonly format?: RequestFormat
  /** How answers report their tokens. Undefined: in any known format. */
  readonly usage?: UsageFormat
  /** What answers with an error status mean. Undefined: the status decides. */
  readonly errors?: ErrorTable
  /** Whether the response is a stream that reports no usage unless the request asks for it. */
  hidesUsage(path: string, fields: ReadonlyMap<string, JsonField>): boolean
  /** An event that is in a stream only because the gateway requested usage. */
  isUsageEvent(event: string): boolean
  /** Whether a stream that ends with these events was cut off. Protocols without this method have no such mark. */
  isCutOff?(end: string): boolean
  /** Fields to set so that the response stream reports its usage. */
  usageFields?(fields: ReadonlyMap<string, JsonField>): Readonly<Record<string, unknown>>
  /**
   * A body whose inner parts name another model. Undefined if only the path, or the field `model`, names it. `body`: a
   * JSON object.
   */
  bodyWithModel?(path: string, body: Buffer, model: string): Buffer | undefined
  /** The header in which its SDKs look for the id of a request. */
  readonly requestIdHeader: string
  readonly errorType: string
  errorBody(complaint: Complaint): string
  /** In the middle of a stream. `path`: of the request. `end`: the last events that were sent. */
  errorEvent(complaint: Complaint, path: string, end?: string): string
  /** Its SDKs report an error event as an error, so the response may end as HTTP demands. Default: the connection breaks. */
  readonly endsAfterErrorEvent?: boolean
  /** A text in the form of an answer on this path. Undefined if answers on this path are no text. */
  textAnswer(path: string, request: TextRequest): TextAnswer | undefined
  /** Whether a POST without an idempotency key may be sent twice: the only harm is the double cost. */
  repeatable(path: string): boolean
}

export function bearer({ authorization }: IncomingHttpHeaders): string | undefined {
  if (authorization === undefined) return undefined
  return authorization.slice(0, 7).toLowerCase() === 'bearer '
    ? authorization.slice(7).trim()
    : undefined
}
