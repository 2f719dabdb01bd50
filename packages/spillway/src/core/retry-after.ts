/**
 * How long a downstream asks us to wait: `Retry-After` in seconds or as an HTTP-date, `retry-after-ms`
 * and `x-ms-retry-after-ms` in milliseconds.
 */

/** `Headers`, a plain object, or anything else that may or may not hold headers. */
type HeaderSource = unknown

const MS_HEADERS = ['retry-after-ms', 'x-ms-retry-after-ms']

/** Milliseconds from now, or undefined without such a header. `wallMs` is the time of day. */
export function retryAfterFromHeaders(headers: HeaderSource, wallMs: number): number | undefined {
  for (const name of MS_HEADERS) {
    const ms = parseAmount(headerOf(headers, name))
    if (ms !== undefined) return ms
  }
  return parseRetryAfter(headerOf(headers, 'retry-after'), wallMs)
}

/**
 * The value of a `Retry-After` header in milliseconds: seconds in digits, or an HTTP-date. Anything else,
 * such as `1e3`, `0x10` or a boolean, is ignored.
 */
export function parseRetryAfter(value: unknown, wallMs: number): number | undefined {
  const seconds = parseAmount(value)
  if (seconds !== undefined) return seconds * 1_000
  const atMs = parseHttpDate(value)
  return atMs === undefined ? undefined : Math.max(0, atMs - wallMs)
}

/** Digits, with a fraction or without: some vendors send `1.5`. `Number` alone accepts far more. */
const AMOUNT = /^\d{1,15}(\.\d{1,15})?$/

/** A number of at least zero, from a header or from a plain object of headers. */
export function parseAmount(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isFinite(value) && value >= 0 ? value : undefined
  if (typeof value !== 'string') return undefined
  const text = value.trim()
  return AMOUNT.test(text) ? Number(text) : undefined
}

const TIME = '\\d{2}:\\d{2}:\\d{2}'
const MONTH = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)'
const ZONE = '(?:GMT|UTC|[+-]\\d{4})'
/** The three forms of RFC 9110. `Date.parse` accepts nearly any text that ends with a number. */
const HTTP_DATES = [
  `[A-Z][a-z]{2}, \\d{2} ${MONTH} \\d{4} ${TIME} ${ZONE}`,
  `[A-Z][a-z]{5,8}, \\d{2}-${MONTH}-\\d{2} ${TIME} ${ZONE}`,
  `[A-Z][a-z]{2} ${MONTH} [ \\d]\\d ${TIME} \\d{4}`,
].map((form) => new RegExp(`^${form}$`))

/** Milliseconds since 1970. */
export function parseHttpDate(value: unknown): number | undefined {
  if (typeof value !== 'string') return undefined
  const text = value.trim()
  const form = HTTP_DATES.findIndex((each) => each.test(text))
  if (form === -1) return undefined
  // The oldest form names no zone and means GMT.
  const atMs = Date.parse(form === 2 ? `${text} GMT` : text)
  return Number.isNaN(atMs) ? undefined : atMs
}

/** A header by its lower-case name. */
export function headerOf(headers: HeaderSource, name: string): unknown {
  if (typeof headers !== 'object' || headers === null) return undefined
  const { get } = headers as { get?: unknown }
  if (typeof get === 'function') return get.call(headers, name) ?? undefined
  for (const [key, value] of Object.entries(headers)) {
    if (key.toLowerCase() === name) return Array.isArray(value) ? value[0] : value
  }
  return undefined
}
