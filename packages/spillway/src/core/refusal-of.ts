/**
 * Finds the refusal behind an error. SDKs and applications wrap errors of a guard: as `cause`, in an
 * `AggregateError`, or as an SDK error for the HTTP response that `guard.sdk()` created from a refusal.
 */
import { SpillwayError } from './errors.js'

/** Errors looked at before the search ends. Chains of causes are short, but may have cycles. */
const MAX_ERRORS = 32

/** Refusals that were answered as HTTP responses. SDKs keep the headers of a response in their errors. */
const answered = new WeakMap<object, SpillwayError>()

/** Associates the headers of a response with the refusal it was created from. */
export function noteRefusal(headers: Headers, refusal: SpillwayError): void {
  answered.set(headers, refusal)
}

/**
 * Returns the refusal behind an error: the error itself, one of its causes, one of the errors in an
 * `AggregateError`, or the refusal that `guard.sdk()` answered with. The nearest one, if there are several.
 * Undefined if Spillway has not refused anything.
 *
 * @example
 * try {
 *   await client.chat.completions.create(body)
 * } catch (error) {
 *   if (refusalOf(error)?.code === 'CIRCUIT_OPEN') return cachedAnswer
 *   throw error
 * }
 */
export function refusalOf(error: unknown): SpillwayError | undefined {
  const found = new Set<unknown>([error])
  // Errors that are added in the loop are visited as well, so the nearest come first.
  for (const each of found) {
    if (each instanceof SpillwayError) return each
    const refusal = answeredRefusal(each)
    if (refusal !== undefined) return refusal
    for (const inner of innerErrors(each)) if (found.size < MAX_ERRORS) found.add(inner)
  }
  return undefined
}

function answeredRefusal(error: unknown): SpillwayError | undefined {
  const headers = read(error, 'headers')
  return typeof headers === 'object' && headers !== null ? answered.get(headers) : undefined
}

function innerErrors(error: unknown): unknown[] {
  const errors = read(error, 'errors')
  return [read(error, 'cause'), ...(Array.isArray(errors) ? errors.slice(0, MAX_ERRORS) : [])]
}

/** Getters of foreign errors may throw. */
function read(error: unknown, field: string): unknown {
  if (typeof error !== 'object' || error === null) return undefined
  try {
    return (error as Record<string, unknown>)[field]
  } catch {
    return undefined
  }
}

/**
 * The refusal with which a server answers an error. An error with an explicit HTTP status keeps it; other errors get
 * 500. Axios copies the status of the refusal.
 */
export function refusalToAnswer(error: unknown): SpillwayError | undefined {
  if (error instanceof SpillwayError) return error
  const refusal = refusalOf(error)
  if (refusal === undefined || answeredRefusal(error) !== undefined) return refusal
  const status = read(error, 'statusCode') ?? read(error, 'status')
  if (status === refusal.status) return refusal
  const isChosen = typeof status === 'number' && status >= 400 && status < 600 && status !== 500
  return isChosen ? undefined : refusal
}
