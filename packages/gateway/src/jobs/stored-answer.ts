/** Format of a stored vendor answer, with a bounded size. */
import type { Dispatcher } from 'undici'
import { type StoredBytes, storeBytes } from './stored-request.js'

export interface StoredAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: StoredBytes
}

/** Headers that describe the body. Others are not stored. */
const KEPT = [
  'content-type',
  'content-encoding',
  'content-language',
  'content-disposition',
] as const

class AnswerTooLargeError extends Error {
  readonly retryable = false

  constructor(maxBytes: number) {
    super(`the answer is larger than ${maxBytes} bytes`)
    this.name = 'AnswerTooLargeError'
  }
}

/** `onPiece` is called with the size of each chunk. */
export async function readWhole(
  body: Dispatcher.ResponseData['body'],
  maxBytes: number,
  onPiece: (chunk: Buffer, bytes: number) => void,
): Promise<Buffer> {
  const pieces: Buffer[] = []
  let bytes = 0
  // Leaving the loop lets the vendor go.
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new AnswerTooLargeError(maxBytes)
    pieces.push(chunk)
    onPiece(chunk, bytes)
  }
  return Buffer.concat(pieces)
}

export function storeAnswer(
  { statusCode, headers }: Dispatcher.ResponseData,
  bytes: Buffer,
): StoredAnswer {
  const kept: Record<string, string> = {}
  for (const name of KEPT) {
    const value = headers[name]
    if (value !== undefined) kept[name] = String(value)
  }
  return { status: statusCode, headers: kept, body: storeBytes(bytes) }
}
