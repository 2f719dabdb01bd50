/** A request as it goes over the wire, in one piece if it is small: one write costs less than two. */
import type { WireRequest } from './ask.js'
import { headerLine, trustedLine } from './header-line.js'

const PATH = /^[\x21-\x7e\x80-\xff]+$/
/** Larger bodies are not copied. */
const MOST_COPIED_BYTES = 32_768
/** Without a body these say that they have none. */
const EXPECTS_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])

/** Its head and, if it is small, its body; otherwise that apart. */
export type RequestBytes = readonly [first: Buffer, second?: Buffer]

/** `host`: where it goes, as a header says it. */
export function requestBytes(
  { method, path, headers, trustedUpTo = 0 }: WireRequest,
  body: Buffer | undefined,
  host: string,
): RequestBytes {
  if (!PATH.test(path)) throw new TypeError('a path must not contain spaces or control characters')
  let head = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n`
  for (let i = 0; i < headers.length; i += 2) {
    const lineOf = i < trustedUpTo ? trustedLine : headerLine
    head += lineOf(headers[i] as string, headers[i + 1] as string)
  }
  const length = body?.length ?? 0
  if (length > 0 || EXPECTS_BODY.has(method)) head += `content-length: ${length}\r\n`
  head += '\r\n'
  if (body === undefined || length === 0) return [Buffer.from(head, 'latin1')]
  if (length > MOST_COPIED_BYTES) return [Buffer.from(head, 'latin1'), body]
  const bytes = Buffer.allocUnsafe(head.length + length)
  bytes.write(head, 0, 'latin1')
  body.copy(bytes, head.length)
  return [bytes]
}
