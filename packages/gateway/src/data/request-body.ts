/**
 * A request's body: kept whole up to a size, so that it can be read for what it asks and sent again;
 * a larger one goes on as it comes, once. Beyond the largest size it is refused.
 */
import type { IncomingMessage } from 'node:http'
import { addPiece, wholeOf } from '../wire/pieces.js'
import { PlainRequest } from '../wire/plain-request.js'

export interface BodyLimits {
  readonly keepBytes: number
  readonly maxBytes: number
}

export type RequestBody = { readonly kind: 'whole'; readonly bytes: Buffer } | PassingBody

interface Progress {
  /** Somebody has begun to send it on. */
  begun: boolean
  /** It is the client that is waited for. */
  waiting: boolean
  /** All of it has come. */
  complete: boolean
}

/** Its beginning, and everything, once. */
export interface PassingBody {
  readonly kind: 'passing'
  readonly head: Buffer
  readonly pieces: AsyncIterable<Buffer>
  readonly progress: Progress
}

export class TooLargeError extends Error {
  readonly code = 'BODY_TOO_LARGE'

  constructor(maxBytes: number) {
    super(`the body is larger than ${maxBytes} bytes`)
  }
}

/** The client left in the middle of its request. */
export class HungUpError extends Error {
  readonly code = 'HUNG_UP'
}

/** At once, if it is there. */
export function readBody(
  request: IncomingMessage | PlainRequest,
  limits: BodyLimits,
  onFault: (error: unknown) => void,
): RequestBody | Promise<RequestBody> {
  return request instanceof PlainRequest
    ? readPlainBody(request)
    : readAsItComes(request, limits, onFault)
}

/** Those that are large are never plain. */
function readPlainBody(request: PlainRequest): RequestBody | Promise<RequestBody> {
  const { body } = request
  if (body !== undefined) return { kind: 'whole', bytes: body }
  return request.readBody().then(
    (bytes) => ({ kind: 'whole', bytes }),
    () => Promise.reject(new HungUpError('the client hung up')),
  )
}

/** `onFault`: the client's side of a body that passes went wrong; told before whoever sends it hears. */
function readAsItComes(
  request: IncomingMessage,
  limits: BodyLimits,
  onFault: (error: unknown) => void,
): Promise<RequestBody> {
  const announced = Number(request.headers['content-length'] ?? 0)
  if (announced > limits.maxBytes) return Promise.reject(new TooLargeError(limits.maxBytes))
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    const onData = (chunk: Buffer) => {
      addPiece(chunks, chunk)
      bytes += chunk.length
      if (bytes <= limits.keepBytes) return
      request.pause()
      forget()
      const head = wholeOf(chunks)
      if (bytes > limits.maxBytes) return reject(new TooLargeError(limits.maxBytes))
      const progress = { begun: false, waiting: false, complete: false }
      const pieces = passing(head, request, limits, progress, onFault)
      resolve({ kind: 'passing', head, pieces, progress })
    }
    let whole = false
    const onEnd = () => {
      // Nothing else comes, so the listeners may stay: taking four off costs every request.
      whole = true
      resolve({ kind: 'whole', bytes: wholeOf(chunks) })
    }
    const onClose = () => {
      if (whole) return
      forget()
      reject(new HungUpError('the client hung up'))
    }
    const forget = () => {
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose)
    }
    request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose)
  })
}

async function* passing(
  head: Buffer,
  request: IncomingMessage,
  { maxBytes }: BodyLimits,
  progress: Progress,
  onFault: (error: unknown) => void,
): AsyncGenerator<Buffer> {
  let bytes = head.length
  progress.begun = true
  yield head
  try {
    progress.waiting = true
    for await (const chunk of request as AsyncIterable<Buffer>) {
      progress.waiting = false
      bytes += chunk.length
      if (bytes > maxBytes) throw new TooLargeError(maxBytes)
      yield chunk
      progress.waiting = true
    }
  } catch (error) {
    onFault(error)
    throw error
  }
  progress.waiting = false
  progress.complete = true
}
