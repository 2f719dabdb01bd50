/** A request as a vendor receives it: path, headers and body, with the gateway's values in place of the client's. */
import type { Dispatcher } from 'undici'
import type { ByteList } from '../request/byte-list.js'
import { requestTarget } from '../request/canonical-path.js'
import { withFields } from '../request/rewrite-body.js'
import type { VendorRequest } from '../vendor/vendor-client.js'
import type { ClientRequest } from '../wire/client.js'
import type { Aim } from './aim.js'
import type { Question } from './question.js'

/** A body up to this size is sent in one piece; a larger one is never copied. */
const MAX_COPIED_BYTES = 1_048_576

export function outgoing(
  request: ClientRequest,
  question: Question,
  aim: Aim,
  tellUsage: boolean,
): VendorRequest {
  // The vendor gets the path by which the route and the limits were chosen.
  const url = question.path + requestTarget(request.url ?? '/').query
  const headers = aim.forwarded.of(request.rawHeaders, request.headers.connection)
  // A body that was read is forwarded decoded, so that the vendor reads what was read here.
  if (question.parsed.json !== undefined) removeHeader(headers, 'content-encoding')
  const body = bodyFor(question, aim, tellUsage)
  addOwnHeaders(headers, request, question, aim)
  if (isChunkList(body)) headers.push('content-length', String(body.length))
  return {
    method: (request.method ?? 'GET') as Dispatcher.HttpMethod,
    path: pathFor(url, question.route.stripPrefix),
    headers,
    body,
  }
}

function removeHeader(headers: string[], removed: string): void {
  for (let i = headers.length - 2; i >= 0; i -= 2) {
    if (headers[i] === removed) headers.splice(i, 2)
  }
}

function addOwnHeaders(
  headers: string[],
  request: ClientRequest,
  { parsed: { body }, idempotencyKey }: Question,
  aim: Aim,
): void {
  for (const each of aim.ownHeaders) headers.push(each)
  if (idempotencyKey !== undefined) headers.push('idempotency-key', idempotencyKey)
  const length = request.headers['content-length']
  if (body.kind === 'streamed' && length !== undefined) headers.push('content-length', length)
}

function bodyFor(question: Question, aim: Aim, tellUsage: boolean): VendorRequest['body'] {
  const { body } = question.parsed
  if (body.kind === 'streamed') return body.chunks
  const bytes = editedBody(question, aim, tellUsage, body.bytes)
  if (bytes.length === 0) return undefined
  return bytes.length <= MAX_COPIED_BYTES ? bytes.toBuffer() : new ChunkList(bytes)
}

function editedBody(
  { parsed: { json } }: Question,
  { vendor, target }: Aim,
  tellUsage: boolean,
  bytes: ByteList,
): ByteList {
  if (json === undefined || (target.model === undefined && !tellUsage)) return bytes
  const model = target.model === undefined ? {} : { model: target.model }
  const usage = tellUsage ? vendor.protocol.usageFields?.(json.fields) : {}
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
export function heldBody(question: Question, aim: Aim): Buffer | undefined {
  const { body } = question.parsed
  if (body.kind === 'streamed' || body.bytes.length === 0) return undefined
  return editedBody(question, aim, false, body.bytes).toBuffer()
}

function pathFor(url: string, prefix: string | undefined): string {
  if (prefix === undefined || !url.startsWith(prefix)) return url
  const rest = url.slice(prefix.length)
  if (rest.startsWith('/')) return rest
  // Only whole parts of a path are taken off.
  return rest === '' || rest.startsWith('?') ? `/${rest}` : url
}
