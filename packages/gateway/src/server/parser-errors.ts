/** Answers to bytes that are not a request: they are written to the socket itself. */
import type { Socket } from 'node:net'
import type { RequestRecord } from '../request/record.js'
import { clientMessage, type Fault } from '../response/errors.js'
import { linger } from '../response/linger.js'
import { uniqueId } from '../response/privacy.js'

const REASONS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
  501: 'Not Implemented',
}

/** The answer to an error of Node's parser. Undefined if the connection has failed, so that there is none. */
export function faultOfParser(code: string | undefined): Fault | undefined {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return fault(
      431,
      'HEADERS_TOO_LARGE',
      'the headers are larger than server.maxHeaderBytes; send less or raise it',
    )
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return fault(408, 'SLOW_HEADERS', 'the headers did not arrive within server.headersMs; retry')
  }
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') {
    return fault(400, 'MALFORMED_REQUEST', 'the extensions of a chunk are too long')
  }
  return code?.startsWith('HPE_')
    ? fault(400, 'MALFORMED_REQUEST', 'this is not an HTTP request')
    : undefined
}

export const NO_TUNNEL: Fault = fault(
  501,
  'METHOD_NOT_SUPPORTED',
  'the method CONNECT is not supported',
)

function fault(status: number, code: string, message: string): Fault {
  return { status, code, message, closes: true }
}

export function answerRaw(socket: Socket, fault: Fault): RequestRecord {
  const { status, code } = fault
  const message = clientMessage(fault)
  const id = uniqueId()
  const body = JSON.stringify({
    error: { message, type: 'invalid_request_error', param: null, code, request_id: id },
  })
  const head = [
    `HTTP/1.1 ${status} ${REASONS[status] ?? 'Error'}`,
    `spillway-request-id: ${id}`,
    `spillway-decision: refused;reason=${code}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ].join('\r\n')
  if (socket.writable) {
    socket.end(`${head}\r\n\r\n${body}`)
    linger(socket, socket)
  } else socket.destroy()
  return {
    id,
    method: '-',
    path: '-',
    route: undefined,
    user: undefined,
    tier: undefined,
    priority: undefined,
    model: undefined,
    sentModel: undefined,
    streamed: false,
    status,
    code,
    stage: undefined,
    vendor: undefined,
    vendorAttempts: [],
    attempts: 0,
    degraded: undefined,
    waitedMs: 0,
    firstByteMs: undefined,
    durationMs: 0,
    end: undefined,
    usage: undefined,
    shadow: undefined,
  }
}
