/**
 * A request as it waits in the store: all that a vendor needs to know, and nothing secret. Our keys are
 * put in when it is sent, by whoever sends it; the caller's is kept as a mark that cannot be read back.
 */
import { createHash, createHmac } from 'node:crypto'
import type { Dispatcher } from 'undici'
import type { ClientRequest } from '../request/client-http.js'
import type { RoutedRequest } from '../request/routed-request.js'
import type { Target } from '../routing/target.js'
import type { VendorRequest } from '../vendor/vendor-client.js'
import { heldBody, vendorRequest } from '../vendor/vendor-request.js'

type Cost = Readonly<Record<string, number>>

export interface StoredRequest {
  /** A mark of whoever may know what comes of it. */
  readonly owner: string
  /** Two with the same idempotency key must have the same mark. */
  readonly mark: string
  readonly method: string
  readonly path: string
  /** Names and values in turn. */
  readonly headers: readonly string[]
  readonly body: StoredBytes | undefined
  /** Doing it twice does no harm. */
  readonly harmless: boolean
  /** Reserved for it, by unit. */
  readonly cost: Cost | undefined
  /** Answers it asks for. */
  readonly answers: number
  /** Of each answer. Undefined as well if an older release has stored the request. */
  readonly maxTokens: number | undefined
}

/** As text where it is text. */
export type StoredBytes = { readonly text: string } | { readonly base64: string }

/** What says who somebody is, or may be thought to; not a key that only tells two requests apart. */
export const CREDENTIAL =
  /authorization|cookie|^(?!idempotency-)(.*[-_])?(api-?)?(key|token|secret|password)$/i
/** Heeded here: the vendor is to answer when it has an answer. */
const HEEDED = 'prefer'

export function storeRequest(
  request: ClientRequest,
  routed: RoutedRequest,
  target: Target,
  owner: string,
  cost: Cost | undefined,
): StoredRequest {
  const bare: Target = { ...target, ownHeaders: [] }
  const { method, path, headers } = vendorRequest(request, routed, bare, false)
  const bytes = heldBody(routed, bare)
  return {
    owner,
    mark: markOf(method, path, routed),
    method,
    path,
    headers: withoutSecrets(headers),
    body: bytes && storeBytes(bytes),
    harmless: routed.harmless,
    cost,
    answers: routed.facts.answers,
    maxTokens: routed.facts.maxTokens,
  }
}

/** With our key, or whatever else goes with every request. */
export function restoreRequest(
  stored: StoredRequest,
  ownHeaders: readonly string[],
): VendorRequest {
  return {
    method: stored.method as Dispatcher.HttpMethod,
    path: stored.path,
    headers: [...stored.headers, ...ownHeaders],
    body: stored.body && restoreBytes(stored.body),
  }
}

function withoutSecrets(headers: readonly string[]): string[] {
  const kept: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string
    if (name !== HEEDED && !CREDENTIAL.test(name)) kept.push(name, headers[i + 1] as string)
  }
  return kept
}

function markOf(method: string, path: string, { parsed: { body } }: RoutedRequest): string {
  const hash = createHash('sha256').update(`${method} ${path}\n`)
  if (body.kind === 'held') for (const chunk of body.bytes.chunks) hash.update(chunk)
  return hash.digest('base64url')
}

/** A key cannot be found out from it, short of trying all keys there could be. */
export function ownerOf(key: string | undefined, user: string): string {
  const [secret, what] = key === undefined ? [user, 'user'] : [key, 'key']
  return createHmac('sha256', secret).update(`spillway job of ${what}`).digest('base64url')
}

export function storeBytes(bytes: Buffer): StoredBytes {
  const text = bytes.toString()
  return Buffer.byteLength(text) === bytes.length && Buffer.from(text).equals(bytes)
    ? { text }
    : { base64: bytes.toString('base64') }
}

export function restoreBytes(stored: StoredBytes): Buffer {
  return 'text' in stored ? Buffer.from(stored.text) : Buffer.from(stored.base64, 'base64')
}

/** False: something else has written to the store, or the record was damaged there. */
export function isStoredRequest(data: unknown): data is StoredRequest {
  if (typeof data !== 'object' || data === null) return false
  const { method, path, headers, body } = data as Partial<Record<keyof StoredRequest, unknown>>
  const isBody = body === undefined || (typeof body === 'object' && body !== null)
  return typeof method === 'string' && typeof path === 'string' && Array.isArray(headers) && isBody
}
