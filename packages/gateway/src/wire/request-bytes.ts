/** A request as it goes over the wire, in one piece if it is small: one write costs less than two. */
import type { WireRequest } from './ask.js'
import { isHeaderName } from './header-name.js'

const NOT_VALUE = /[^\t\x20-\x7e\x80-\xff]/
const PATH = /^[\x21-\x7e\x80-\xff]+$/
/** Larger bodies are not copied. */
const MOST_COPIED_BYTES = 32_768
/** Without a body these say that they have none. */
const EXPECTS_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])

/** Names that were found to be names. They come from requests: no request may fill the memory. */
const names = new Set<string>()
const MOST_NAMES = 500

/** Its head and, if it is small, its body; otherwise that apart. */
export type RequestBytes = readonly [first: Buffer, second?: Buffer]

/** `host`: where it goes, as a header says it. */
export function requestBytes(
  { method, path, headers }: WireRequest,
  body: Buffer | undefined,
  host: string,
): RequestBytes {
  if (!PATH.test(path)) throw new TypeError('a path must not contain spaces or control characters')
  let head = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n`
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string
    const value = headers[i + 1] as string
    if (!names.has(name)) learnName(name)
    if (NOT_VALUE.test(value)) throw new TypeError(`the header ${name} has a character it cannot`)
    head += `${name}: ${value}\r\n`
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

function learnName(name: string): void {
  if (!isHeaderName(name)) throw new TypeError('a header has a name that is none')
  if (names.size >= MOST_NAMES) names.clear()
  names.add(name)
}
