/**
 * Decides whether a request is valid, by the RFCs (9112, 9110, 3986) and the gateway's additional rules. Written
 * independently of the gateway, so that the two can disagree.
 */

/** Several spaces may be read as one (RFC 9112, 3). */
const REQUEST_LINE = /^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) +(\/[\x21-\x7e]*) HTTP\/1\.([01])$/
const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*$/
const SINGLE = [
  'host',
  'upgrade',
  'x-api-key',
  'content-type',
  'authorization',
  'content-length',
  'transfer-encoding',
  'idempotency-key',
  'content-encoding',
  'spillway-deadline-ms',
]
const CHUNK = /^([0-9a-fA-F]{1,15})(?:;[\t\x20-\x7e\x80-\xff]*)?\r\n/

/** The number of valid requests at the beginning of these bytes. */
export function countRequests(text: string): number {
  let rest = text
  for (let count = 0; ; count++) {
    const length = lengthOfRequest(rest)
    if (length === undefined) return count
    rest = rest.slice(length)
  }
}

/** The length of the first request, if it is valid. */
function lengthOfRequest(text: string): number | undefined {
  // Node's parser skips all line breaks before a request, not only CRLF.
  const start = /^[\r\n]*/.exec(text)?.[0].length ?? 0
  const end = text.indexOf('\r\n\r\n', start)
  if (end === -1 || end - start > 16_384) return undefined
  const [line = '', ...lines] = text.slice(start, end).split('\r\n')
  const [, , url = '', minor] = REQUEST_LINE.exec(line) ?? []
  if (url === '' || url.length > 8_192 || !isPlainUrl(url)) return undefined
  const headers = headersIn(lines)
  if (headers === undefined || !isSane(headers, minor === '0')) return undefined
  const body = bodyAt(text, end + 4, headers)
  if (body === undefined || !isSaneBody(body.content, headers)) return undefined
  return body.end
}

function isPlainUrl(url: string): boolean {
  const [path = ''] = url.split('?')
  if (url.startsWith('//') || /["<>#\\`{}]/.test(path) || /["<>#]/.test(url)) return false
  if (/%(?![0-9a-f]{2})/i.test(url) || /\?.*%00/s.test(url)) return false
  // A browser would resolve dots and backslashes, encoded or not.
  const seen = new URL(`http://a${url}`)
  if (seen.host !== 'a' || seen.pathname !== path) return false
  let decoded = path
  try {
    for (let i = 0; i < 4 && decoded.includes('%'); i++) {
      decoded = decodeURIComponent(decoded)
      if ([...decoded].some((letter) => letter < ' ' || letter === '\x7f' || letter === '\\'))
        return false
      if (decoded.split('/').some((part) => /^\.{1,2}(;|$)/.test(part))) return false
    }
  } catch {
    return decoded !== path
  }
  return !decoded.split('/').some((part) => /^\.{1,2}(;|$)/.test(part))
}

function headersIn(lines: readonly string[]): Map<string, string> | undefined {
  const headers = new Map<string, string>()
  if (lines.length > 100) return undefined
  for (const line of lines) {
    const [, name = '', value = ''] = HEADER.exec(line) ?? []
    const lower = name.toLowerCase()
    if (name === '' || (headers.has(lower) && SINGLE.includes(lower))) return undefined
    headers.set(lower, value)
  }
  return headers
}

function isSane(headers: ReadonlyMap<string, string>, isOld: boolean): boolean {
  const coding = headers.get('transfer-encoding')
  const length = headers.get('content-length')
  if (!isOld && !headers.has('host')) return false
  if (!/^[\w.:[\]-]*$/.test(headers.get('host') ?? '')) return false
  if (coding !== undefined && (isOld || length !== undefined || !/^chunked$/i.test(coding)))
    return false
  if (length !== undefined && !/^\d{1,15}$/.test(length)) return false
  if (!/^(h2c)?$/i.test(headers.get('upgrade') ?? '')) return false
  return /^(100-continue)?$/i.test(headers.get('expect') ?? '')
}

function bodyAt(text: string, start: number, headers: ReadonlyMap<string, string>) {
  if (headers.has('transfer-encoding')) return chunksAt(text, start)
  const end = start + Number(headers.get('content-length') ?? 0)
  return end > text.length ? undefined : { content: text.slice(start, end), end }
}

function chunksAt(text: string, start: number) {
  let content = ''
  for (let at = start; ; ) {
    const [line, size] = CHUNK.exec(text.slice(at)) ?? []
    if (line === undefined || size === undefined) return undefined
    at += line.length
    const length = Number.parseInt(size, 16)
    if (length === 0) {
      const trailers = /^(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*\r\n)*\r\n/
      const [found] = trailers.exec(text.slice(at)) ?? []
      return found === undefined ? undefined : { content, end: at + found.length }
    }
    content += text.slice(at, at + length)
    at += length
    if (text.slice(at, at + 2) !== '\r\n') return undefined
    at += 2
  }
}

/** A body declared as JSON has to be an object. */
function isSaneBody(content: string, headers: ReadonlyMap<string, string>): boolean {
  if (content === '' || !headers.get('content-type')?.includes('json')) return true
  try {
    const value: unknown = JSON.parse(Buffer.from(content, 'latin1').toString())
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}
