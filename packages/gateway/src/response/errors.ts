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
  // Another gateway may answer at once; the same one does after its restart.
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

/** `called`: a request was sent to a vendor, so the failure is the vendor's or the network's. */
export function faultOf(error: unknown, vendor: string | undefined, called: boolean): Fault {
  if (error instanceof SpillwayError || error instanceof RequestError) return error
  if (!called) return { status: 500, code: 'INTERNAL', message: 'the gateway failed' }
  return {
    status: 502,
    code: 'VENDOR_ERROR',
    message: `${vendor ?? 'the vendor'} could not be reached or ended its answer early: ${reasonOf(error)}`,
  }
}

/** Returns a code instead of the message, because messages may contain addresses. */
function reasonOf(error: unknown): string {
  const { code, name, cause } = error as { code?: unknown; name?: unknown; cause?: unknown }
  if (typeof code === 'string') return code
  if (typeof cause === 'object' && cause !== null) return reasonOf(cause)
  return typeof name === 'string' ? name : 'unknown error'
}
