/**
 * Receives request bodies. A body is either held in memory, so that it can be read and sent again, or
 * streamed to the vendor once while it arrives.
 */
import type { IncomingMessage } from 'node:http'
import type { Transform } from 'node:stream'
import { RequestError } from '../../response/errors.js'
import { ByteList } from './byte-list.js'

export interface BodyLimits {
  /** Bodies whose content is not read are held up to this size, and streamed beyond it. */
  readonly keepBytes: number
  /** A larger body is a 413, compressed or not. */
  readonly maxBytes: number
}

export interface ReceiveLimits {
  readonly maxBytes: number
  /** Called with the size of each chunk that arrives. */
  onReceived?: ((bytes: number) => void) | undefined
  /** Called with the size of each chunk, decoded, before it is held in memory. May throw. */
  onHeld?: ((bytes: number) => void) | undefined
}

export type RequestBody = HeldBody | StreamedBody

export interface HeldBody {
  readonly kind: 'held'
  readonly bytes: ByteList
}

export interface StreamedBody {
  readonly kind: 'streamed'
  /** Can be iterated once. */
  readonly chunks: AsyncIterable<Buffer>
  readonly progress: StreamProgress
}

export interface StreamProgress {
  /** Its first chunk was requested, so it cannot be sent to another target. */
  begun: boolean
  /** The next chunk has not arrived from the client. */
  waiting: boolean
  /** All chunks have arrived. */
  complete: boolean
}

/**
 * A compressed body may grow to this many times its size. Text and JSON rarely grow 20 times; without a bound, a
 * hundred bytes could take `maxBytes` of memory.
 */
const MAX_EXPANSION = 100
/** A decoded body up to this size may have grown by any factor. */
const ALWAYS_DECODED_BYTES = 65_536

const RETRY_AFTER_MS = 1_000

/** Limits the memory that all held request bodies of this process take together (`body.maxTotalBytes`). */
export class BodyMemory {
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  /** Throws a refusal if the bodies would exceed `maxTotalBytes` with these bytes. */
  take(bytes: number, maxTotalBytes: number): void {
    if (this.#bytes + bytes > maxTotalBytes) throw tooManyBodies(maxTotalBytes)
    this.#bytes += bytes
  }

  giveBack(bytes: number): void {
    this.#bytes -= bytes
  }
}

/** The client disconnected before its body was complete. */
export class HungUpError extends Error {
  readonly code = 'HUNG_UP'
}

export function tooLarge(maxBytes: number): RequestError {
  const message = `the body is larger than body.maxBytes (${maxBytes} bytes); send less or raise it`
  return new RequestError({ status: 413, code: 'BODY_TOO_LARGE', message, closes: true })
}

/**
 * Passes each chunk of the body to `onChunk` until that returns false or throws. Resolves with the result of `finish`,
 * which is called with true if that was the whole body. `finish` may throw.
 */
function receive<T>(
  request: IncomingMessage,
  onChunk: (chunk: Buffer) => boolean,
  finish: (isWhole: boolean) => T,
): Promise<T> {
  return new Promise((resolve, reject) => {
    let isOver = false
    const onData = (chunk: Buffer) => {
      try {
        if (onChunk(chunk)) return
        request.pause()
        unlisten()
        resolve(finish(false))
      } catch (error) {
        // The request is refused, and the rest of its body is dropped.
        unlisten()
        reject(error)
      }
    }
    const onEnd = () => {
      // The listeners stay: nothing but 'close' follows, and removing four of them takes about 2 µs in a profile.
      isOver = true
      try {
        resolve(finish(true))
      } catch (error) {
        reject(error)
      }
    }
    const onClose = () => {
      if (isOver) return
      unlisten()
      reject(hungUp())
    }
    const unlisten = () => {
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose)
    }
    request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose)
  })
}

/** Holds a body up to `keepBytes` and streams a larger one. Its content is not read. */
export function holdOrStream(
  request: IncomingMessage,
  limits: BodyLimits & ReceiveLimits,
  onFault: (error: unknown) => void,
): Promise<RequestBody> {
  const { keepBytes, maxBytes } = limits
  const bytes = new ByteList()
  const take = (chunk: Buffer): boolean => {
    limits.onReceived?.(chunk.length)
    limits.onHeld?.(chunk.length)
    bytes.push(chunk)
    if (bytes.length > maxBytes) throw tooLarge(maxBytes)
    return bytes.length <= keepBytes
  }
  return receive<RequestBody>(request, take, (isWhole) => {
    if (isWhole) return { kind: 'held', bytes }
    const progress = { begun: false, waiting: false, complete: false }
    const chunks = streamed(bytes, request, limits, progress, onFault)
    return { kind: 'streamed', chunks, progress }
  })
}

/** `onFault` is called before the reader sees the error: the fault is the client's, not the vendor's. */
async function* streamed(
  head: ByteList,
  request: IncomingMessage,
  { maxBytes, onReceived }: ReceiveLimits,
  progress: StreamProgress,
  onFault: (error: unknown) => void,
): AsyncGenerator<Buffer> {
  let length = head.length
  progress.begun = true
  yield* head.chunks
  try {
    progress.waiting = true
    // The answer to the client needs its connection, which the end of a usual iteration would destroy.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      progress.waiting = false
      onReceived?.(chunk.length)
      length += chunk.length
      if (length > maxBytes) throw tooLarge(maxBytes)
      yield chunk
      progress.waiting = true
    }
  } catch (error) {
    onFault(error)
    throw error
  } finally {
    // Received and dropped, if the reader has stopped before the end.
    request.resume()
  }
  progress.waiting = false
  progress.complete = true
}

/**
 * Holds the whole decoded body, up to `maxBytes`, and passes its chunks to `onChunk` as they arrive. If `onChunk` throws,
 * the rest of the body is received and dropped, so that the connection can be used again. Then that error is thrown.
 * Resolves with the result of `finish`.
 */
export function holdDecoded<T>(
  request: IncomingMessage,
  decoder: Transform | undefined,
  limits: ReceiveLimits,
  onChunk: (chunk: Buffer) => void,
  finish: (bytes: ByteList) => T,
): Promise<T> {
  const { maxBytes } = limits
  let bytes = new ByteList()
  let length = 0
  let rejection: { readonly error: unknown } | undefined
  const take = (chunk: Buffer): boolean => {
    length += chunk.length
    if (length > maxBytes) throw tooLarge(maxBytes)
    if (rejection !== undefined) return true
    limits.onHeld?.(chunk.length)
    try {
      onChunk(chunk)
      bytes.push(chunk)
    } catch (error) {
      rejection = { error }
      bytes = new ByteList()
    }
    return true
  }
  const received = (chunk: Buffer): boolean => {
    limits.onReceived?.(chunk.length)
    return take(chunk)
  }
  const finishHeld = (): T => {
    if (rejection !== undefined) throw rejection.error
    return finish(bytes)
  }
  if (decoder === undefined) return receive(request, received, finishHeld)
  return receiveThrough(decoder, request, limits, take).then(finishHeld)
}

function receiveThrough(
  decoder: Transform,
  request: IncomingMessage,
  { maxBytes, onReceived }: ReceiveLimits,
  onChunk: (chunk: Buffer) => boolean,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let encodedBytes = 0
    let decodedBytes = 0
    let isReceived = false
    let isRefused = false
    let failure: RequestError | undefined
    decoder.on('data', (chunk: Buffer) => {
      decodedBytes += chunk.length
      try {
        if (decodedBytes > Math.max(ALWAYS_DECODED_BYTES, MAX_EXPANSION * encodedBytes)) {
          throw expandsTooMuch()
        }
        onChunk(chunk)
      } catch (error) {
        // Decoding stops here: a compressed body can be a thousand times larger than what was received.
        isRefused = true
        decoder.destroy()
        reject(error)
      }
    })
    decoder.on('end', () => resolve())
    decoder.on('error', () => {
      failure = undecodable()
      if (isReceived) reject(failure)
    })
    const write = (chunk: Buffer): boolean => {
      // The rest of a body that was refused is dropped.
      if (isRefused) return true
      onReceived?.(chunk.length)
      encodedBytes += chunk.length
      if (encodedBytes > maxBytes) throw tooLarge(maxBytes)
      if (decoder.destroyed || decoder.write(chunk)) return true
      request.pause()
      const resume = () => void request.resume()
      decoder.once('drain', resume).once('close', resume)
      return true
    }
    const onEnd = () => {
      isReceived = true
      if (failure !== undefined) reject(failure)
      else decoder.end()
    }
    const fail = (error: unknown) => {
      decoder.destroy()
      reject(error)
    }
    receive(request, write, onEnd).catch(fail)
  })
}

function expandsTooMuch(): RequestError {
  const message = `the body grows more than ${MAX_EXPANSION} times when it is decoded; send it uncompressed`
  return new RequestError({ status: 413, code: 'BODY_TOO_LARGE', message, closes: true })
}

function undecodable(): RequestError {
  const message = 'the body cannot be decoded with its content-encoding, or is incomplete'
  return new RequestError({ status: 400, code: 'INVALID_BODY', message })
}

function hungUp(): HungUpError {
  return new HungUpError('the client disconnected')
}

function tooManyBodies(maxTotalBytes: number): RequestError {
  return new RequestError({
    status: 503,
    code: 'BODY_MEMORY_FULL',
    message: `the bodies of running requests have reached body.maxTotalBytes (${maxTotalBytes} bytes); retry later`,
    retryAfterMs: RETRY_AFTER_MS,
  })
}
