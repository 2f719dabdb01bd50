/** Something went wrong between us and a vendor, below what HTTP has words for. */
export type WireErrorCode =
  /** No connection stood in time: nothing was sent. */
  | 'CONNECT_TIMEOUT'
  /** The other side closed the connection before its answer was whole. */
  | 'CONNECTION_CLOSED'
  /** Its answer ended, as HTTP has it, but was not whole. */
  | 'STREAM_CUT_OFF'
  /** What came is no HTTP, or could be read in two ways. */
  | 'MALFORMED_ANSWER'
  /** We have closed all connections. */
  | 'CONNECTIONS_CLOSED'

export class WireError extends Error {
  readonly code: WireErrorCode

  constructor(code: WireErrorCode, message: string) {
    super(message)
    this.name = 'WireError'
    this.code = code
  }
}

export function malformed(what: string): WireError {
  return new WireError('MALFORMED_ANSWER', `the vendor's answer ${what}`)
}

const sent = new WeakMap<Error, boolean>()

/** Whether anything of a request had left when this befell it. */
export function noteSent(error: Error, wasSent: boolean): void {
  sent.set(error, wasSent)
}

/** Nothing, if nobody knows. */
export function wasSent(error: unknown): boolean | undefined {
  return error instanceof Error ? sent.get(error) : undefined
}
