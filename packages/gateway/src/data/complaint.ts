/** What can go wrong with a request, before or beside the guards. */
import { SpillwayError } from 'spillway'
import { TooLargeError } from './request-body.js'

export type Fault = { readonly status: number; readonly code: string; readonly message: string }

/** The gateway's own word on a request. */
export class RequestError extends Error {
  readonly status: number
  readonly code: string

  constructor({ status, code, message }: Fault) {
    super(message)
    this.status = status
    this.code = code
  }
}

export function faultOf(error: unknown, vendor: string | undefined): Fault {
  if (error instanceof SpillwayError || error instanceof RequestError) return error
  if (error instanceof TooLargeError)
    return { status: 413, code: error.code, message: error.message }
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
