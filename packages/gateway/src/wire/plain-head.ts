/**
 * The head of a request as nearly all of them are: whole, of a well-known kind, and such that nobody could
 * read it in two ways. Anything else is left to Node's parser; what is read here means the same to that.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { FieldReader } from './fields.js'

export interface PlainHead {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  /** Names in small letters and values in turn. */
  readonly rawHeaders: string[]
  readonly bodyBytes: number
}

const FIRST_LINE = /^(POST|GET) (\/[\w\-.~/?&=%:,+@]*) HTTP\/1\.1\r\n/
const LENGTH = /^(?:0|[1-9]\d{0,8})$/
/** Each of these asks for more than an answer, says how the body is cut, or is read by Node in a way of its own. */
const NOT_PLAIN: ReadonlySet<string> = new Set([
  '-proto-',
  'expect',
  'http2-settings',
  'proxy-connection',
  'set-cookie',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
const LONGEST_NOT_PLAIN = 17

class NotPlain extends Error {}
const NOT = new NotPlain()
const fields = new FieldReader(() => NOT)

/** Inherits nothing: a client may call a header `constructor`. */
class Headers {
  [name: string]: string
}
Object.setPrototypeOf(Headers.prototype, null)
Reflect.deleteProperty(Headers.prototype, 'constructor')

/** `text`: up to the empty line, without it. Nothing: it is not for us. */
export function readPlainHead(text: string): PlainHead | undefined {
  const [, method, url] = FIRST_LINE.exec(text) ?? []
  if (method === undefined || url === undefined) return undefined
  // A blank to most, but not everywhere to Node.
  if (text.includes('\t')) return undefined
  let rawHeaders: string[]
  try {
    rawHeaders = fields.read(text)
  } catch (error) {
    if (error === NOT) return undefined
    throw error
  }
  const headers = new Headers()
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    // What is said twice has rules of its own.
    if (headers[name] !== undefined) return undefined
    if (name.length <= LONGEST_NOT_PLAIN && NOT_PLAIN.has(name)) return undefined
    headers[name] = rawHeaders[i + 1] as string
  }
  const { connection, 'content-length': length } = headers
  if (connection !== undefined && connection.toLowerCase() !== 'keep-alive') return undefined
  if (length !== undefined && !LENGTH.test(length)) return undefined
  return { method, url, headers, rawHeaders, bodyBytes: length === undefined ? 0 : Number(length) }
}
