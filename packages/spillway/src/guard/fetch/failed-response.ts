/** Reads why a response has an error status. Its body is read for that, and the response gets a copy of it. */
import { noteFailure } from '../../core/failures/error-kind.js'
import { type ErrorTable, readFailure } from '../llm/errors/error-table.js'
import { withBody } from '../stream/watched-response.js'

/** Most bytes that are read of an error body. The rest stays in the stream. */
const MAX_BYTES = 65_536

/** A response with this content that is marked as failed. */
export async function withFailure(
  table: ErrorTable,
  response: Response,
  wallMs: number,
): Promise<Response> {
  const { status, headers, body } = response
  if (body === null) {
    noteFailure(response, readFailure(table, { status, headers, body: '' }, wallMs))
    return response
  }
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader()
  const chunks: Uint8Array[] = []
  let bytes = 0
  let isDone = false
  while (!isDone && bytes < MAX_BYTES) {
    const { done, value } = await reader.read()
    isDone = done
    if (value !== undefined) {
      chunks.push(value)
      bytes += value.length
    }
  }
  const text = Buffer.concat(chunks).toString()
  const copy = withBody(response, streamOf(chunks, reader))
  noteFailure(copy, readFailure(table, { status, headers, body: text }, wallMs))
  return copy
}

/** The bytes read so far, followed by the rest. */
function streamOf(
  chunks: readonly Uint8Array[],
  rest: ReadableStreamDefaultReader<Uint8Array>,
): ReadableStream<Uint8Array> {
  let next = 0
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const chunk = chunks[next++]
        if (chunk !== undefined) return controller.enqueue(chunk)
        const { done, value } = await rest.read()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel: (reason) => rest.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}
