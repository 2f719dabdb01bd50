/**
 * Format of a queued request in the store, without secrets. The pod that sends it adds the vendor's key. The caller's
 * key is stored as a hash only.
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
  /** Hash of the caller, who alone may read the answer. */
  readonly owner: string
  /** Hash of the request. Requests with the same idempotency key must have the same one. */
  readonly mark: string
  readonly method: string
  readonly path: string
  /** Names and values alternate. */
  readonly headers: readonly string[]
  readonly body: StoredBytes | undefined
  /** It may be sent twice. */
  readonly harmless: boolean
  /** Reserved for it, by unit. */
  readonly cost: Cost | undefined
  /** Number of answers (`n`). */
  readonly answers: number
  /** Of each answer. Undefined as well if an older release has stored the request. */
  readonly maxTokens: number | undefined
}

/** As text where it is text. */
export type StoredBytes = { readonly text: string } | { readonly base64: string }

/** Headers with credentials. An idempotency key is none. */
export const CREDENTIAL =
  /authorization|cookie|^(?!idempotency-)(.*[-_])?(api-?)?(key|token|secret|password)$/i
/** `respond-async` is for the gateway: the vendor answers as usual. */
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

/** `ownHeaders`: our key and the configured headers of the vendor. */
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

/** The key cannot be read from it, only guessed. */
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

/** False: the record is damaged, or was written by another program. */
export function isStoredRequest(data: unknown): data is StoredRequest {
  if (typeof data !== 'object' || data === null) return false
  const { method, path, headers, body } = data as Partial<Record<keyof StoredRequest, unknown>>
  const isBody = body === undefined || (typeof body === 'object' && body !== null)
  return typeof method === 'string' && typeof path === 'string' && Array.isArray(headers) && isBody
}
