/**
 * URLs of requests. Their path is made canonical, because a client may write `/v1/chat/%63ompletions`: a vendor decodes
 * it, so a gateway that compared the text as written would choose another route. URLs that a server behind the gateway
 * could read in another way are refused: with a host, dot segments, control characters, or several encodings.
 */
import { type RequestAddress, remembered } from 'spillway/internal'
import type { Fault } from '../../response/errors.js'

const ESCAPE = /%[0-9a-f]{2}/gi
const UNRESERVED = /[A-Za-z0-9\-._~]/

/**
 * Decodes escapes of unreserved characters once and writes all others in upper case. `%2F` stays inside its
 * segment, and `%2563` stays encoded, because a second decoding would change what the path means.
 */
export function canonicalPath(path: string): string {
  if (!path.includes('%')) return path
  return path.replace(ESCAPE, (encoded) => {
    const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16))
    return UNRESERVED.test(character) ? character : encoded.toUpperCase()
  })
}

const ABSOLUTE = /^https?:\/\/([^/?#\\]*)(.*)$/is

/**
 * Clients that are configured for a proxy send absolute URLs. `validate.ts` checks that the authority is the host of
 * the request; otherwise it has no meaning, because the configuration chooses the vendor.
 */
export function splitAuthority(url: string): { authority: string | undefined; path: string } {
  if (url.startsWith('/')) return { authority: undefined, path: url }
  const [, authority, path = ''] = ABSOLUTE.exec(url) ?? []
  if (authority === undefined) return { authority, path: url }
  return { authority, path: path.startsWith('/') ? path : `/${path}` }
}

/**
 * Splits a request's URL. The query stays as the client wrote it. Only the Gemini protocol reads it, for a key and for
 * the form of a stream.
 */
export function requestTarget(url: string): RequestAddress {
  const { path } = splitAuthority(url)
  const at = path.indexOf('?')
  if (at === -1) return { path: canonicalPath(path), query: '' }
  return { path: canonicalPath(path.slice(0, at)), query: path.slice(at) }
}

/** Nearly all URLs match this: nothing in them is encoded or unusual. */
const PLAIN = /^\/(?!\/)[\w\-.~!$&'()*+,;=:@/|^[\]]*(?:\?[\x21\x24\x26-\x3b\x3d\x3f-\x7e]*)?$/
const PATH = /^[\w\-.~!$&'()*+,;=:@/|^[\]%]*$/
const QUERY = /^[\x21\x24-\x3b\x3d\x3f-\x7e]*$/
const BAD_ESCAPE = /%(?![0-9a-f]{2})/i
/** Servers with support for path parameters read `..;x` as `..`. */
const DOT_SEGMENT = /(?:^|[/\\])\.{1,2}(?:[/\\;?#]|$)/
const UNPRINTABLE = /[^ -~\u{80}-\u{10ffff}]|\\/u
/** All characters that change what a path means are ASCII, so only those are decoded again. */
const ASCII_ESCAPE = /%[0-7][0-9a-f]/gi
/** No client encodes a path more often than this; a path that is still encoded afterwards is refused. */
const MOST_DECODINGS = 5

/** The endpoints of LLM APIs that generate. */
const ENDPOINT =
  /\/(?:v1\/)?(?:(?:chat\/)?completions|responses(?:\/input_tokens|\/compact)?|embeddings|moderations|images\/[a-z]+|audio\/[a-z]+|messages(?:\/count_tokens)?)$/
/** Before the model of Azure OpenAI and behind that of Gemini. */
const DEPLOYMENTS = '/deployments/'
const METHODS = [
  ':generateContent',
  ':streamGenerateContent',
  ':embedContent',
  ':batchEmbedContents',
  ':countTokens',
]

export function faultInUrl(url: string): Fault | undefined {
  if (PLAIN.test(url) && !url.includes('/.')) return undefined
  const message = problemWith(url)
  return message === undefined ? undefined : invalidUrl(message)
}

/**
 * What an LLM API's path must not have in addition: empty segments, a slash at its end or path parameters,
 * encoded or not, and an endpoint in capitals or with encoded characters. Some servers ignore these differences, so
 * they would lead past the limit of an endpoint.
 * `path`: its canonical form, in which `faultInUrl` has found nothing.
 */
export const faultInLlmPath: (path: string) => Fault | undefined = remembered((path) => {
  let decoded = path
  for (decoded of decodings(path)) {
    if (decoded.includes('//')) return invalidUrl('a path must not contain //')
    if (decoded.endsWith('/')) return invalidUrl('a path must not end in /')
    if (decoded.includes(';')) return invalidUrl('a path must not contain ;')
  }
  const lower = decoded.toLowerCase()
  const [endpoint] = ENDPOINT.exec(lower) ?? []
  if (endpoint !== undefined && !path.endsWith(endpoint)) {
    return invalidUrl(`${endpoint} must be written in lower case and without escapes`)
  }
  return faultInModelPath(path, lower)
})

/** Lanes and limits depend on the model, so a path that names it has one spelling. `lower`: decoded, in lower case. */
function faultInModelPath(path: string, lower: string): Fault | undefined {
  const method = METHODS.find((each) => lower.endsWith(each.toLowerCase()))
  const part = method ?? (lower.includes(DEPLOYMENTS) ? DEPLOYMENTS : undefined)
  if (part === undefined) return undefined
  const isSpelled = method === undefined ? path.includes(part) : path.endsWith(part)
  if (isSpelled && !path.includes('%')) return undefined
  return invalidUrl(`a path with ${part} must be written like this and without escapes`)
}

/** Its connection is closed, because a server in front of the gateway may have read the request otherwise. */
function invalidUrl(message: string): Fault {
  return { status: 400, code: 'INVALID_URL', message, closes: true }
}

function problemWith(url: string): string | undefined {
  if (!url.startsWith('/') || /^\/[/\\]/.test(url)) {
    return 'a URL must be a path that begins with a single /: a request cannot choose the host'
  }
  const at = url.indexOf('?')
  const path = at === -1 ? url : url.slice(0, at)
  const query = at === -1 ? '' : url.slice(at + 1)
  if (!PATH.test(path) || !QUERY.test(query)) return 'a URL has a character that must be encoded'
  if (BAD_ESCAPE.test(url)) return 'a URL has a % without two hex digits after it'
  if (query.includes('%00')) return 'a URL must not contain a NUL'
  if (!isUtf8(path)) return 'a path has escapes that are not UTF-8'
  return problemWithPath(path)
}

function problemWithPath(path: string): string | undefined {
  let decoded = path
  for (decoded of decodings(path)) {
    if (UNPRINTABLE.test(decoded)) {
      return 'a path must not contain a backslash or a control character'
    }
    if (DOT_SEGMENT.test(decoded)) return 'a path must not have . or .. as one of its segments'
  }
  return decoded.search(ASCII_ESCAPE) === -1
    ? undefined
    : `a path must not be encoded more than ${MOST_DECODINGS} times`
}

/** The path as written, decoded once, decoded twice, and so on until decoding changes nothing. */
function* decodings(path: string): Generator<string> {
  let decoded = path
  yield decoded
  for (let times = 0; times < MOST_DECODINGS && decoded.includes('%'); times++) {
    const next = decoded.replace(ASCII_ESCAPE, (encoded) =>
      String.fromCharCode(Number.parseInt(encoded.slice(1), 16)),
    )
    if (next === decoded) return
    decoded = next
    yield decoded
  }
}

function isUtf8(path: string): boolean {
  if (!path.includes('%')) return true
  try {
    decodeURIComponent(path)
    return true
  } catch {
    return false
  }
}
