/** Reads a small JSON body, or returns the problem with it. */
import type { IncomingMessage } from 'node:http'

const MOST_BYTES = 16 * 1_024

type Json = { value: unknown } | { status: 400 | 413 | 415; problem: string }

/** A framework may have read it already. */
export async function readJson(request: IncomingMessage & { body?: unknown }): Promise<Json> {
  const type = request.headers['content-type'] ?? ''
  // A form of another site cannot send this type without a preflight request.
  if (!/^application\/json\b/i.test(type)) {
    return { status: 415, problem: 'needs content-type: application/json' }
  }
  if (typeof request.body === 'object' && request.body !== null) return { value: request.body }
  const pieces: Buffer[] = []
  let bytes = 0
  try {
    for await (const piece of request as AsyncIterable<Buffer>) {
      bytes += piece.length
      if (bytes > MOST_BYTES) return { status: 413, problem: `at most ${MOST_BYTES} bytes` }
      pieces.push(piece)
    }
    return { value: JSON.parse(Buffer.concat(pieces).toString()) }
  } catch {
    return { status: 400, problem: 'the body is no JSON' }
  }
}
