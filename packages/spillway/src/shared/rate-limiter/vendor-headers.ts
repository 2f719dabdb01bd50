/**
 * Reads the limit headers of vendors: OpenAI (`x-ratelimit-remaining-tokens`,
 * reset as `6m0s`), Anthropic (`anthropic-ratelimit-input-tokens-remaining`, reset as a date), and
 * the IETF draft (`RateLimit: "default";r=50;t=30`, or the older three headers).
 */
import {
  headerOf,
  parseAmount,
  parseHttpDate,
  retryAfterFromHeaders,
} from '../../core/retry-after.js'

export interface VendorHeaders {
  retryAfterMs: number | undefined
  left: { unit: string; remaining: number; resetMs: number }[]
}

/** Headers by unit: remaining units and reset time. */
const DIALECTS = (
  [
    ['requests', 'requests'],
    ['tokens', 'tokens'],
    ['inputTokens', 'input-tokens'],
    ['outputTokens', 'output-tokens'],
  ] as const
).flatMap(([unit, word]) => [
  {
    unit,
    remaining: `x-ratelimit-remaining-${word}`,
    reset: `x-ratelimit-reset-${word}`,
  },
  {
    unit,
    remaining: `anthropic-ratelimit-${word}-remaining`,
    reset: `anthropic-ratelimit-${word}-reset`,
  },
])

/** Headers with the requested pause. */
const PAUSE_HEADERS = ['retry-after', 'retry-after-ms'] as const

/** Dates use the vendor's clock, which its `Date` header shows; this machine's may be an hour off. */
function vendorTimeMs(headers: unknown, wallMs: number): number {
  return parseHttpDate(headerOf(headers, 'date')) ?? wallMs
}

export function readVendorHeaders(headers: unknown, ownWallMs: number): VendorHeaders {
  const left: VendorHeaders['left'] = []
  let wallMs: number | undefined
  // Parsing a date is slow, and few vendors send dates.
  const vendorMs = () => {
    wallMs ??= vendorTimeMs(headers, ownWallMs)
    return wallMs
  }
  const add = (unit: string, remaining: unknown, reset: unknown) => {
    const units = parseAmount(remaining)
    if (units === undefined) return
    left.push({ unit, remaining: Math.floor(units), resetMs: readReset(reset, vendorMs) })
  }
  for (const { unit, remaining, reset } of DIALECTS) {
    const units = headerOf(headers, remaining)
    if (units !== undefined) add(unit, units, headerOf(headers, reset))
  }
  addIetf(headers, add)
  const hasPause = PAUSE_HEADERS.some((name) => headerOf(headers, name) !== undefined)
  return { retryAfterMs: hasPause ? retryAfterFromHeaders(headers, vendorMs()) : undefined, left }
}

function addIetf(
  headers: unknown,
  add: (unit: string, remaining: unknown, reset: unknown) => void,
): void {
  const combined = headerOf(headers, 'ratelimit')
  if (typeof combined === 'string') {
    const [, remaining] = /(?:^|[;,\s])(?:r|remaining)=(\d+)/.exec(combined) ?? []
    const [, reset] = /(?:^|[;,\s])(?:t|reset)=(\d+)/.exec(combined) ?? []
    return add('requests', remaining, reset)
  }
  const remaining =
    headerOf(headers, 'ratelimit-remaining') ?? headerOf(headers, 'x-ratelimit-remaining')
  if (remaining === undefined) return
  const reset = headerOf(headers, 'ratelimit-reset') ?? headerOf(headers, 'x-ratelimit-reset')
  add('requests', remaining, reset)
}

const PART_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
/** Larger than any number of seconds until a reset: seconds since 1970. */
const EPOCH_SECONDS = 1e9

/** Reads `1s`, `6m0s`, `20ms`; seconds; seconds since 1970; a date. Returns 0 for other texts. */
function readReset(reset: unknown, wallMs: () => number): number {
  const seconds = parseAmount(reset)
  if (seconds !== undefined) {
    return seconds < EPOCH_SECONDS ? seconds * 1_000 : Math.max(0, seconds * 1_000 - wallMs())
  }
  if (typeof reset !== 'string') return 0
  const spanMs = readSpan(reset)
  if (spanMs !== undefined) return spanMs
  const atMs = ISO_DATE.test(reset) ? Date.parse(reset) : parseHttpDate(reset)
  return atMs === undefined || Number.isNaN(atMs) ? 0 : Math.max(0, atMs - wallMs())
}

const ISO_DATE = /^\d{4}-\d{2}-\d{2}T[\d:.]+(?:Z|[+-]\d{2}:\d{2})$/

const PART = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/y

/** Undefined if the text has any other part. */
export function readSpan(text: string): number | undefined {
  let ms = 0
  for (let at = 0; at < text.length; at = PART.lastIndex) {
    PART.lastIndex = at
    const [, amount, unit] = PART.exec(text) ?? []
    if (unit === undefined) return undefined
    ms += Number(amount) * PART_MS[unit as keyof typeof PART_MS]
  }
  return ms
}
