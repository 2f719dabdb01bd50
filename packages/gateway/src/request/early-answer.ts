/**
 * Answers that are sent while the client still sends its body. If the gateway closed such a connection at once, TCP would
 * reset it because of the bytes that were not read, and most clients would see the reset instead of the answer. So the
 * gateway ends its side only, then receives and drops the rest of the body for a limited time ("lingering close").
 */
import { constants } from 'node:http2'
import { linger } from '../response/linger.js'
import { type ClientRequest, type ClientResponse, hasBody } from './client-http.js'

/** The rest of a body up to this size is received as usual, and the connection is used again. */
const SMALL_BODY_BYTES = 65_536

/** Whether a body is still arriving that is too large to wait for its end. */
export function hasMuchToSend(request: ClientRequest): boolean {
  if (request.complete || !hasBody(request)) return false
  const { 'content-length': length = Number.POSITIVE_INFINITY } = request.headers
  return Number(length) > SMALL_BODY_BYTES
}

/** Emitted by a response whose connection lingers. Its own 'close' event follows at the end of the connection. */
const SENT = Symbol('sent')

/** Calls `listener` once or twice: when the whole answer was sent, and when the response was closed. */
export function onceSent(response: ClientResponse, listener: () => void): void {
  response.once('close', listener)
  response.once(SENT, listener)
}

interface Ending {
  /** The connection ends with this answer. */
  readonly closes: boolean
  /** The head has a Content-Length, so that the client knows the end of the answer without the end of the connection. */
  readonly hasLength: boolean
}

/** Ends an answer with the last bytes of its body. */
export function endAnswer(
  response: ClientResponse,
  last: string | Buffer | undefined,
  { closes, hasLength }: Ending,
): void {
  const { stream } = response
  const request = response.req as ClientRequest
  if (request.complete || !hasBody(request)) return void response.end(last)
  request.resume()
  if (stream !== undefined) {
    response.end(last)
    // The client may stop sending: the answer does not depend on the rest (RFC 9113, 8.1).
    stream.once('finish', () => stream.close(constants.NGHTTP2_NO_ERROR))
    return
  }
  if (!closes) return void response.end(last)
  const { socket } = request
  // `response.end()` closes the connection. After the last byte of the body that causes no reset.
  request.once('end', () => response.end())
  // Without this, Node would send the answer in the next turn, and the gateway may close the connection before.
  socket.cork()
  // An answer without a body, as to HEAD, has nothing else that would send its head.
  response.flushHeaders()
  // Called after its turn, if the answers to earlier requests of the connection are still being sent.
  response.write(last ?? '', () => {
    linger(socket, request, () => response.end())
    if (!hasLength) return
    socket.end()
    response.emit(SENT)
  })
  socket.uncork()
}
