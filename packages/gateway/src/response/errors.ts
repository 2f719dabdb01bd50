/** What can go wrong with a request, before or beside the guards. */
import { SpillwayError } from 'spillway'

export interface Fault {
  readonly status: number
  readonly code: string
  readonly message: string
  /** Its connection is not to be trusted any further. */
  readonly closes?: boolean
}

/** The gateway's own word on a request. */
export class RequestError extends Error {
  readonly status: number
  readonly code: string
  readonly closes: boolean

  constructor({ status, code, message, closes = false }: Fault) {
    super(message)
    this.status = status
    this.code = code
    this.closes = closes
  }
}

/** `called`: a vendor has been asked, so what went wrong is its, or that of the way to it. */
export function faultOf(error: unknown, vendor: string | undefined, called: boolean): Fault {
  if (error instanceof SpillwayError || error instanceof RequestError) return error
  if (!called) return { status: 500, code: 'INTERNAL', message: 'the gateway failed' }
  return {
    status: 502,
    code: 'VENDOR_ERROR',
    message: `${vendor ?? 'the vendor'} could not be reached or broke off: ${reasonOf(error)}`,
  }
}

/** Codes and not messages, which may have addresses in them. */
function reasonOf(error: unknown): string {
  const { code, name, cause } = error as { code?: unknown; name?: unknown; cause?: unknown }
  if (typeof code === 'string') return code
  if (typeof cause === 'object' && cause !== null) return reasonOf(cause)
  return typeof name === 'string' ? name : 'unknown error'
}
