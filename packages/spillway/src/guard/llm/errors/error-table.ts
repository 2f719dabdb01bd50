/**
 * Reads an error answer of a vendor: its kind, and when a request may succeed again. Each protocol has a table of rules;
 * the first rule that matches decides, and after the last one the status.
 */
import type { ErrorKind, VendorFailure } from '../../../core/failures/error-kind.js'
import { readVendorHeaders } from '../../../shared/rate-limiter/vendor-headers.js'

/** The error in a body, as far as rules depend on it. */
export interface ReportedFailure {
  readonly status: number
  /** Names that the vendor gives the error: its `code`, `type`, `status` or `reason`. */
  readonly names: readonly string[]
  readonly message: string
  /** Time until a retry makes sense, if the body has it. */
  readonly retryAfterMs?: number | undefined
}

/** All parts that a rule has must match. */
export interface ErrorRule {
  readonly status?: number
  readonly name?: string
  readonly message?: RegExp
  readonly kind: ErrorKind
  /** It is about one model, not about the key. */
  readonly perModel?: true
}

export interface ErrorTable {
  readonly rules: readonly ErrorRule[]
  /** `body`: parsed JSON, or undefined. */
  read(status: number, body: unknown, wallMs: number): ReportedFailure
}

/** The parts of a response with an error status. */
export interface ErrorAnswer {
  readonly status: number
  readonly headers: unknown
  /** The beginning of the body. */
  readonly body: string
}

export function readFailure(
  table: ErrorTable,
  { status, headers, body }: ErrorAnswer,
  wallMs: number,
): VendorFailure {
  const reported = table.read(status, parsed(body), wallMs)
  const rule = ruleOf(table, reported)
  const kind = rule?.kind ?? kindOfStatus(status)
  const { retryAfterMs: inHeaders, left } = readVendorHeaders(headers, wallMs)
  const usedUp = left.filter(({ remaining }) => remaining === 0).map(({ resetMs }) => resetMs)
  const resetMs = usedUp.length === 0 ? undefined : Math.max(...usedUp)
  // The time of a whole quota is in the body; headers are about the next request.
  const inBody = kind === 'quota-exhausted' ? reported.retryAfterMs : undefined
  const retryAfterMs = inBody ?? inHeaders ?? reported.retryAfterMs ?? resetMs
  return {
    kind,
    ...(retryAfterMs !== undefined && { retryAfterMs: Math.ceil(retryAfterMs) }),
    ...(rule?.perModel === true && { perModel: true }),
  }
}

function ruleOf(
  { rules }: ErrorTable,
  { status, names, message }: ReportedFailure,
): ErrorRule | undefined {
  return rules.find(
    (each) =>
      (each.status === undefined || each.status === status) &&
      (each.name === undefined || names.includes(each.name)) &&
      (each.message === undefined || each.message.test(message)),
  )
}

/** Meaning of a status without a helpful body. */
export function kindOfStatus(status: number): ErrorKind {
  if (status === 401) return 'invalid-key'
  if (status === 402) return 'quota-exhausted'
  if (status === 429) return 'rate-limited'
  if (status === 503 || status === 529) return 'overloaded'
  // 408: the vendor timed out. 409 and 425 are judged by their status, as other wrong requests are.
  return status >= 500 || status === 408 ? 'server' : 'bad-request'
}

function parsed(body: string): unknown {
  try {
    const value: unknown = JSON.parse(body)
    // Gemini wraps the error of a streamed request into an array.
    return Array.isArray(value) ? value[0] : value
  } catch {
    return undefined
  }
}

export function objectIn(value: unknown, name?: string): Readonly<Record<string, unknown>> {
  const inner = name === undefined ? value : (value as Record<string, unknown> | undefined)?.[name]
  return typeof inner === 'object' && inner !== null ? (inner as Record<string, unknown>) : {}
}

export function textIn(object: Readonly<Record<string, unknown>>, name: string): string {
  const value = object[name]
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}
