/**
 * How long a downstream asks us to stay away, in whichever dialect it says so: `Retry-After` in
 * seconds or as an HTTP-date, `retry-after-ms` and `x-ms-retry-after-ms` in milliseconds.
 */

/** `Headers`, a plain object, or anything else that may or may not hold headers. */
type HeaderSource = unknown

const MS_HEADERS = ['retry-after-ms', 'x-ms-retry-after-ms']

/** Milliseconds from now, or nothing if the headers do not say. `wallMs` is the time of day. */
export function retryAfterFromHeaders(headers: HeaderSource, wallMs: number): number | undefined {
  for (const name of MS_HEADERS) {
    const ms = nonNegative(headerOf(headers, name))
    if (ms !== undefined) return ms
  }
  return parseRetryAfter(headerOf(headers, 'retry-after'), wallMs)
}

/** The value of a `Retry-After` header: seconds, or a date. */
export function parseRetryAfter(value: unknown, wallMs: number): number | undefined {
  const seconds = nonNegative(value)
  if (seconds !== undefined) return seconds * 1_000
  if (typeof value !== 'string') return undefined
  // Date.parse reads "12" and "-5" as years; an HTTP-date always names its day.
  if (!/^[A-Za-z]/.test(value.trim())) return undefined
  // An HTTP-date is in GMT whether it says so or, in its oldest form, not.
  const atMs = Date.parse(/GMT|UTC|[+-]\d{4}$/.test(value) ? value : `${value} GMT`)
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - wallMs)
}

function nonNegative(value: unknown): number | undefined {
  if (value === undefined || value === null || String(value).trim() === '') return undefined
  const amount = Number(value)
  return Number.isFinite(amount) && amount >= 0 ? amount : undefined
}

/** A header by its name in lower case. */
export function headerOf(headers: HeaderSource, name: string): unknown {
  if (typeof headers !== 'object' || headers === null) return undefined
  const { get } = headers as { get?: unknown }
  if (typeof get === 'function') return get.call(headers, name) ?? undefined
  for (const [key, value] of Object.entries(headers)) {
    if (key.toLowerCase() === name) return Array.isArray(value) ? value[0] : value
  }
  return undefined
}
