/** A request as a vendor receives it: path, headers and body, with the gateway's values in place of the client's. */
import type { Dispatcher } from 'undici'
import { ByteList } from '../request/body/byte-list.js'
import { withFields } from '../request/body/rewrite-body.js'
import type { ClientRequest } from '../request/client-http.js'
import { KEY_HEADERS } from '../request/key-headers.js'
import type { RoutedRequest } from '../request/routed-request.js'
import type { Target } from '../routing/target.js'
import type { VendorRequest } from './vendor-client.js'

const KEY_NAMES: ReadonlySet<string> = new Set(KEY_HEADERS)

/** A body up to this size is sent in one piece. A larger one is never copied, so it is held in memory once. */
const MAX_COPIED_BYTES = 65_536

export function vendorRequest(
  request: ClientRequest,
  routed: RoutedRequest,
  target: Target,
  requestsUsage: boolean,
): VendorRequest {
  const headers = target.forwarded.of(request.rawHeaders, request.headers.connection)
  // A body that was read is forwarded decoded, so that the vendor reads what was read here.
  if (routed.parsed.json !== undefined) removeHeader(headers, 'content-encoding')
  const body = bodyFor(routed, target, requestsUsage)
  addOwnHeaders(headers, request, routed, target)
  if (isChunkList(body)) headers.push('content-length', String(body.length))
  return {
    method: (request.method ?? 'GET') as Dispatcher.HttpMethod,
    path: pathFor(urlFor(routed, target), routed.route.stripPrefix),
    headers,
    body,
  }
}

/** The vendor gets the path by which the route and the limits were chosen, with the target's model. */
function urlFor(
  { path, query, modelInPath }: RoutedRequest,
  { vendor, config: { model } }: Target,
): string {
  if (!modelInPath || model === undefined) return path + query
  return (vendor.protocol.format?.withModel(path, model) ?? path) + query
}

function removeHeader(headers: string[], removed: string): void {
  for (let i = headers.length - 2; i >= 0; i -= 2) {
    if (headers[i] === removed) headers.splice(i, 2)
  }
}

function addOwnHeaders(
  headers: string[],
  request: ClientRequest,
  { parsed: { body }, idempotencyKey, callerKey }: RoutedRequest,
  target: Target,
): void {
  for (const each of target.ownHeaders) headers.push(each)
  // Keys are taken out of the query. One that is meant for the vendor is sent as a header.
  if (target.forwarded.credentials && callerKey !== undefined && isFromQuery(headers)) {
    headers.push(...target.vendor.protocol.vendorKey(callerKey))
  }
  if (idempotencyKey !== undefined) headers.push('idempotency-key', idempotencyKey)
  const length = request.headers['content-length']
  if (body.kind === 'streamed' && length !== undefined) headers.push('content-length', length)
}

function isFromQuery(headers: readonly string[]): boolean {
  return !headers.some((name, index) => index % 2 === 0 && KEY_NAMES.has(name))
}

function bodyFor(
  routed: RoutedRequest,
  target: Target,
  requestsUsage: boolean,
): VendorRequest['body'] {
  const { body } = routed.parsed
  if (body.kind === 'streamed') return body.chunks
  const bytes = editedBody(routed, target, requestsUsage, body.bytes)
  if (bytes.length === 0) return undefined
  return bytes.length <= MAX_COPIED_BYTES ? bytes.toBuffer() : new ChunkList(bytes)
}

function editedBody(
  { parsed: { json }, path, modelInPath }: RoutedRequest,
  { vendor, config }: Target,
  requestsUsage: boolean,
  bytes: ByteList,
): ByteList {
  if (json === undefined || (config.model === undefined && !requestsUsage)) return bytes
  if (modelInPath && config.model !== undefined) {
    const edited = vendor.protocol.bodyWithModel?.(path, bytes.toBuffer(), config.model)
    if (edited !== undefined) return ByteList.of(edited)
  }
  const isNamed = config.model !== undefined && (!modelInPath || json.fields.has('model'))
  const model = isNamed ? { model: config.model } : {}
  const usage = requestsUsage ? vendor.protocol.usageFields?.(json.fields) : {}
  return withFields(bytes, json, { ...model, ...usage })
}

/** A large body in chunks. Can be iterated once for each attempt. */
class ChunkList implements AsyncIterable<Buffer> {
  readonly #bytes: ByteList

  constructor(bytes: ByteList) {
    this.#bytes = bytes
  }

  get length(): number {
    return this.#bytes.length
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    yield* this.#bytes.chunks
  }
}

function isChunkList(body: VendorRequest['body']): body is ChunkList {
  return body instanceof ChunkList
}

/** A held body as it would be sent to this target, in one piece. */
export function heldBody(routed: RoutedRequest, target: Target): Buffer | undefined {
  const { body } = routed.parsed
  if (body.kind === 'streamed' || body.bytes.length === 0) return undefined
  return editedBody(routed, target, false, body.bytes).toBuffer()
}

function pathFor(url: string, prefix: string | undefined): string {
  if (prefix === undefined || !url.startsWith(prefix)) return url
  const rest = url.slice(prefix.length)
  if (rest.startsWith('/')) return rest
  // The prefix ends at a segment of the path: `/a` is no prefix of `/ab`.
  return rest === '' || rest.startsWith('?') ? `/${rest}` : url
}
