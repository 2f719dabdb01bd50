/**
 * Answers that are sent while the client still sends its body. If the gateway closed such a connection at once, TCP would
 * reset it because of the bytes that were not read, and most clients would see the reset instead of the answer. So the
 * gateway ends its side only, then receives and drops the rest of the body for a limited time ("lingering close").
 */
import { constants } from 'node:http2'
import { linger } from '../response/linger.js'
import { type ClientRequest, type ClientResponse, hasBody, noteSent } from './client-http.js'

/** The rest of a body up to this size is received as usual, and the connection is used again. */
const SMALL_BODY_BYTES = 65_536
/** The end of a body whose length was not announced. */
const LAST_CHUNK = '0\r\n\r\n'

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

/** Copying a larger answer costs more than a second piece for the operating system. */
const ONE_PIECE_BYTES = 16_384

/** Node sends a text together with the head, but a buffer as a piece of its own, which takes 6 % longer. */
function endInOnePiece(response: ClientResponse, last: string | Buffer | undefined): void {
  if (Buffer.isBuffer(last) && last.length <= ONE_PIECE_BYTES && response.stream === undefined) {
    // Latin-1 has one character for each byte, so the bytes do not change.
    response.end(last.toString('latin1'), 'latin1')
  } else response.end(last)
}

/**
 * Ends an answer with the last bytes of its body. `closes`: the connection ends with this answer.
 */
export function endAnswer(
  response: ClientResponse,
  last: string | Buffer | undefined,
  closes: boolean,
): void {
  const { stream } = response
  const request = response.req as ClientRequest
  if (request.complete || !hasBody(request)) return endInOnePiece(response, last)
  request.resume()
  if (stream !== undefined) {
    response.end(last)
    // The client may stop sending: the answer does not depend on the rest (RFC 9113, 8.1).
    stream.once('finish', () => stream.close(constants.NGHTTP2_NO_ERROR))
    return
  }
  if (!closes) return void response.end(last)
  const { socket } = request
  // Without this, Node would send the answer in the next turn, and the gateway may close the connection before.
  socket.cork()
  // Sends the head of an answer without a body, such as one to HEAD.
  response.flushHeaders()
  // Called after its turn, if the answers to earlier requests of the connection are still being sent.
  response.write(last ?? '', () => {
    // After the last byte of the body, closing the connection causes no reset.
    if (request.complete) return void response.end()
    // `response.end()` would close the connection now. So the end of the answer is sent without it.
    if (response.chunkedEncoding) socket.write(LAST_CHUNK)
    socket.end()
    linger(socket, request)
    request.once('end', () => socket.destroySoon())
    noteSent(response)
    response.emit(SENT)
  })
  socket.uncork()
}
