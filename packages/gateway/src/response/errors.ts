/** Errors of a request that the gateway reports itself, as opposed to refusals of guards. */
import { SpillwayError } from 'spillway'

export interface Fault {
  readonly status: number
  readonly code: string
  readonly message: string
  /** The connection is closed after the answer. */
  readonly closes?: boolean
  readonly retryAfterMs?: number | undefined
}

/** Guards refuse calls with the same code. */
export const SHUTTING_DOWN: Fault = {
  status: 503,
  code: 'SHUTTING_DOWN',
  message: 'the gateway is shutting down',
  closes: true,
  // Another gateway may answer at once; this one answers again after its restart.
  retryAfterMs: 1_000,
}

/** A refusal by the gateway itself. */
export class RequestError extends Error {
  readonly status: number
  readonly code: string
  readonly closes: boolean
  readonly retryAfterMs: number | undefined

  constructor({ status, code, message, closes = false, retryAfterMs }: Fault) {
    super(message)
    this.status = status
    this.code = code
    this.closes = closes
    this.retryAfterMs = retryAfterMs
  }
}

/** Remedies, for guards' errors without a retry time. */
const ADVICE: Readonly<Record<string, string>> = {
  CALL_TIMEOUT: 'retry, or raise this option',
  DEADLINE_EXCEEDED: 'retry with more time (spillway-deadline-ms or timeout.totalMs)',
}

const MILLISECONDS = /\b(\d+(?:\.\d+)?) ms\b/g

/**
 * The message of an error as clients get it. It names the gateway, because SDKs show it like an error of the vendor,
 * and says when to retry.
 */
export function clientMessage({ code, message, retryAfterMs }: Fault): string {
  const readable = message.replace(MILLISECONDS, (_, ms) => readableTime(Number(ms)))
  if (/\bretry\b/.test(message)) return `Spillway gateway: ${readable}`
  const advice = retryAfterMs === undefined ? ADVICE[code] : `retry in ${seconds(retryAfterMs)} s`
  return `Spillway gateway: ${readable}${advice === undefined ? '' : `; ${advice}`}`
}

const seconds = (ms: number) => Math.max(1, Math.ceil(ms / 1_000))

function readableTime(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  return ms < 120_000 ? `${Math.round(ms / 100) / 10} s` : `${Math.round(ms / 60_000)} min`
}

/** `called`: a request was sent to a vendor, so the failure is the vendor's or the network's. */
export function faultOf(error: unknown, vendor: string | undefined, called: boolean): Fault {
  if (error instanceof SpillwayError || error instanceof RequestError) return error
  if (!called)
    return { status: 500, code: 'INTERNAL', message: 'the gateway failed; its log has the error' }
  return {
    status: 502,
    code: 'VENDOR_ERROR',
    message: `${vendor ?? 'the vendor'} could not be reached or ended its answer early: ${reasonOf(error)}; retry, or check the vendor`,
  }
}

/** Returns a code instead of the message, because messages may contain addresses. */
function reasonOf(error: unknown): string {
  const { code, name, cause } = error as { code?: unknown; name?: unknown; cause?: unknown }
  if (typeof code === 'string') return code
  if (typeof cause === 'object' && cause !== null) return reasonOf(cause)
  return typeof name === 'string' ? name : 'unknown error'
}
