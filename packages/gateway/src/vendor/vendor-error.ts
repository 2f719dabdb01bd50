/** Failures between the gateway and a vendor, below HTTP: connections and malformed answers. */

export type VendorErrorCode =
  /** No connection was open within `connectMs`. */
  | 'CONNECT_TIMEOUT'
  /** The vendor closed the connection before its answer was complete. */
  | 'CONNECTION_CLOSED'
  /** The answer ended as HTTP demands, but its last event is missing. */
  | 'STREAM_CUT_OFF'
  /** The answer is not HTTP, or two programs could read it differently. */
  | 'MALFORMED_ANSWER'
  /** The gateway closed its connections to this vendor. */
  | 'CONNECTIONS_CLOSED'

export class VendorError extends Error {
  /** A `VendorErrorCode`, or the code of the operating system, such as `ECONNRESET`. */
  readonly code: string
  /** False if no byte of the request left the gateway, so that another target may receive it. */
  readonly requestSent: boolean

  constructor(code: string, message: string, options: { requestSent: boolean; cause?: unknown }) {
    super(message, { cause: options.cause })
    this.name = 'VendorError'
    this.code = code
    this.requestSent = options.requestSent
  }
}

/** undici's code → the code that answers, logs and docs show. */
const CODES: ReadonlyMap<unknown, VendorErrorCode> = new Map([
  ['UND_ERR_CONNECT_TIMEOUT', 'CONNECT_TIMEOUT'],
  ['UND_ERR_SOCKET', 'CONNECTION_CLOSED'],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'CONNECTION_CLOSED'],
  ['UND_ERR_HEADERS_OVERFLOW', 'MALFORMED_ANSWER'],
  ['UND_ERR_DESTROYED', 'CONNECTIONS_CLOSED'],
  ['UND_ERR_CLOSED', 'CONNECTIONS_CLOSED'],
])
/** An answer that ends in its headers or between two chunks: the parser reports it, but the connection broke. */
const BROKEN_OFF = 'HPE_INVALID_EOF_STATE'

export function toVendorError(error: Error & { code?: unknown }, requestSent: boolean): Error {
  if (error instanceof VendorError) return error
  const { code, message } = error
  if (code === BROKEN_OFF) {
    return new VendorError('CONNECTION_CLOSED', message, { requestSent, cause: error })
  }
  const isMalformed = error.name === 'HTTPParserError'
  const known = isMalformed ? 'MALFORMED_ANSWER' : CODES.get(code)
  const shown = known ?? (typeof code === 'string' ? code : error.name)
  return new VendorError(shown, message, { requestSent, cause: error })
}

export function malformedAnswer(problem: string): VendorError {
  return new VendorError('MALFORMED_ANSWER', `the vendor's answer ${problem}`, {
    requestSent: true,
  })
}

/** undici's codes for a connection that was never open. */
const NOT_CONNECTED: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** No byte of the request was sent, so the vendor cannot have acted on it. */
export function neverConnected(error: unknown): boolean {
  if (error instanceof VendorError) return !error.requestSent
  return NOT_CONNECTED.has((error as { code?: unknown } | null)?.code)
}
