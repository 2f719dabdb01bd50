/**
 * What a URL must not be. A request never names a host, never leaves the folder it was let into, and
 * means the same to the gateway and to whoever reads it after us, however often that decodes it.
 */
import type { Fault } from './complaint.js'

/** Nothing encoded, nothing odd: nearly all are. */
const PLAIN = /^\/(?!\/)[\w\-.~!$&'()*+,;=:@/|^[\]]*(?:\?[\x21\x24\x26-\x3b\x3d\x3f-\x7e]*)?$/
const PATH = /^[\w\-.~!$&'()*+,;=:@/|^[\]%]*$/
const QUERY = /^[\x21\x24-\x3b\x3d\x3f-\x7e]*$/
const BAD_ESCAPE = /%(?![0-9a-f]{2})/i
/** `..;` is `..` to servers that know parameters of a path. */
const CLIMBING = /(?:^|[/\\])\.{1,2}(?:[/\\;?#]|$)/
const UNPRINTABLE = /[^ -~\u{80}-\u{10ffff}]|\\/u
/** Whoever decodes more often than this has other troubles. */
const DECODED_AT_MOST = 3

export function faultInUrl(url: string): Fault | undefined {
  if (PLAIN.test(url) && !url.includes('/.')) return undefined
  const message = complaintAbout(url)
  if (message === undefined) return undefined
  return { status: 400, code: 'INVALID_URL', message, closes: true }
}

function complaintAbout(url: string): string | undefined {
  if (!url.startsWith('/') || /^\/[/\\]/.test(url)) {
    return 'a URL must be a path that begins with a single /: the host is not for a request to choose'
  }
  const at = url.indexOf('?')
  const path = at === -1 ? url : url.slice(0, at)
  const query = at === -1 ? '' : url.slice(at + 1)
  if (!PATH.test(path) || !QUERY.test(query)) return 'a URL has a character that must be encoded'
  if (BAD_ESCAPE.test(url)) return 'a URL has a % without two hex digits after it'
  if (query.includes('%00')) return 'a URL must not contain a NUL'
  return complaintAboutPath(path)
}

function complaintAboutPath(path: string): string | undefined {
  let decoded: string | undefined = path
  for (let times = 0; times <= DECODED_AT_MOST && decoded !== undefined; times++) {
    if (UNPRINTABLE.test(decoded))
      return 'a path must not contain a backslash or a control character'
    if (CLIMBING.test(decoded)) return 'a path must not have . or .. as one of its parts'
    if (!decoded.includes('%')) return undefined
    const further = decode(decoded)
    // Once it must be UTF-8; what is behind a second decoding need not be anything.
    if (further === undefined && times === 0) return 'a path has escapes that are no UTF-8'
    decoded = further
  }
  return undefined
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
