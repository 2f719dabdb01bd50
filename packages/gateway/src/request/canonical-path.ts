/**
 * The one form of a path that routes, endpoint limits, logs and vendors see (RFC 3986, 6.2.2). A client may
 * write `/v1/chat/%63ompletions`; a vendor decodes it, so a gateway that compared the text as written would
 * choose another route than the vendor does.
 */

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

export interface RequestTarget {
  readonly path: string
  /** As the client wrote it, with its `?`; empty if there is none. */
  readonly query: string
}

/** Splits a request's URL. The query is passed on unchanged: nothing in the gateway is decided by it. */
export function requestTarget(url: string): RequestTarget {
  const at = url.indexOf('?')
  if (at === -1) return { path: canonicalPath(url), query: '' }
  return { path: canonicalPath(url.slice(0, at)), query: url.slice(at) }
}
