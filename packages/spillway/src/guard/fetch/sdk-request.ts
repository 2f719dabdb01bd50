/** Reads what limits and lanes need from a request of an SDK. Its body is parsed, but not kept. */
import { sampleText } from '../llm/estimate/prefix-hash.js'
import { type Prompt, PromptEstimate } from '../llm/estimate/prompt-estimate.js'
import type { RequestAddress, RequestFacts, VendorFormat } from '../llm/vendor-format.js'
import type { Fetch } from './fetch.js'

export interface SdkRequest {
  /** The host that it is sent to, without the port. */
  readonly host: string
  readonly model: string | undefined
  /** Undefined if the request generates nothing, or its body cannot be read. */
  readonly facts: RequestFacts | undefined
  /** Sending it twice has no other effect than to cost twice. */
  readonly repeatable: boolean
  /** The body to send instead; it requests the usage of the stream. */
  readonly body: string | undefined
}

/** `requestsUsage`: the usage of streams is needed. */
export function readSdkRequest(
  format: VendorFormat,
  input: Parameters<Fetch>[0],
  init: RequestInit,
  requestsUsage: boolean,
): SdkRequest {
  const address = addressOf(input)
  const { path, host } = address
  const repeatable = format.isRepeatable(path)
  const kind = format.bodyOn(path)
  const { body } = init
  if (kind === 'form' && body instanceof FormData) {
    const model = format.modelIn?.(path) ?? nameIn(body.get('model'))
    return { host, model, facts: undefined, repeatable, body: undefined }
  }
  const parsed = kind === 'json' && typeof body === 'string' ? objectIn(body) : undefined
  if (parsed === undefined)
    return { host, model: undefined, facts: undefined, repeatable, body: undefined }
  const fields = new Map(
    format.valueFields
      .map((name) => [name, valueAt(parsed, name)] as const)
      .filter(([, value]) => value !== undefined && value !== null),
  )
  const facts = format.factsOf(fields, promptIn(format, parsed), address)
  const added =
    requestsUsage && format.hidesUsage(path, fields) ? format.usageFields?.(fields) : undefined
  return {
    host,
    model: nameIn(facts.model),
    facts: format.isFree(path) ? undefined : facts,
    repeatable,
    body: added && withFields(body as string, parsed, added),
  }
}

function addressOf(input: Parameters<Fetch>[0]): RequestAddress & { host: string } {
  try {
    const url = new URL(input instanceof Request ? input.url : String(input))
    return { host: url.hostname, path: url.pathname, query: url.search }
  } catch {
    // fetch rejects it.
    return { host: '', path: '', query: '' }
  }
}

/** `a.b`: the field `b` of the object in `a`. */
function valueAt(parsed: Record<string, unknown>, name: string): unknown {
  const [first = '', second] = name.split('.', 2)
  const value = parsed[first]
  if (second === undefined || typeof value !== 'object' || value === null) {
    return second === undefined ? value : undefined
  }
  return (value as Record<string, unknown>)[second]
}

function objectIn(body: string): Record<string, unknown> | undefined {
  try {
    const parsed: unknown = JSON.parse(body)
    const isObject = typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)
    return isObject ? (parsed as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

function nameIn(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function promptIn(format: VendorFormat, parsed: Record<string, unknown>): Prompt {
  const estimate = new PromptEstimate()
  const texts: string[] = []
  for (const field of format.contentFields) {
    const content = parsed[field] ?? undefined
    if (content === undefined) continue
    for (const item of Array.isArray(content) ? content : [content]) {
      visit(item, estimate, texts)
      estimate.onPart(field)
    }
  }
  estimate.readWith((hash, index) => {
    const text = texts[index] as string
    hash.addNumber(text.length)
    sampleText(0, text.length, (from, to) => hash.addText(text, from, to))
  })
  return estimate
}

/** `texts`: receives those that were found. */
function visit(content: unknown, estimate: PromptEstimate, texts: string[]): void {
  // An explicit stack, because bodies may be nested deeper than the call stack.
  const waiting = [content]
  while (waiting.length > 0) {
    const value = waiting.pop()
    if (typeof value === 'string') {
      const beginning = value.slice(0, estimate.beginningLength)
      estimate.onText(Buffer.byteLength(value), beginning, texts.length, texts.length)
      texts.push(value)
    } else if (typeof value === 'object' && value !== null) {
      if (!Array.isArray(value)) estimate.onObject()
      for (const inner of Object.values(value)) waiting.push(inner)
    } else estimate.onScalar()
  }
}

/** Fields are put in front of the others where possible, which copies nothing until the body is sent. */
function withFields(
  body: string,
  parsed: Record<string, unknown>,
  fields: Readonly<Record<string, unknown>>,
): string {
  const isSet = Object.keys(fields).some((name) => Object.hasOwn(parsed, name))
  if (isSet) return JSON.stringify({ ...parsed, ...fields })
  return `${JSON.stringify(fields).slice(0, -1)},${body.trimStart().slice(1)}`
}
