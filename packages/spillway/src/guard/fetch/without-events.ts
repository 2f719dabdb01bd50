/** Removes some server-sent events from a response. Its body is read only on demand. */
import { SseFrames } from '../llm/sse-frames.js'
import { withBody } from '../stream/watched-response.js'

/** Returns `response` itself if it is not an event stream. */
export function withoutEvents(response: Response, drop: (event: string) => boolean): Response {
  const isStream = response.headers.get('content-type')?.includes('text/event-stream') === true
  if (!isStream || response.body === null) return response
  const frames = new SseFrames(drop)
  const source: ReadableStreamDefaultReader<Uint8Array> = response.body.getReader()
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          const { done, value } = await source.read()
          const events = done ? frames.rest() : frames.push(Buffer.from(value))
          if (events.length > 0) controller.enqueue(events)
          if (done) return controller.close()
          if (events.length > 0) return
        }
      },
      cancel: (reason) => source.cancel(reason),
    },
    { highWaterMark: 0 },
  )
  return withBody(response, body)
}
