/** What a reader gets, as a stream of its own. Nothing is read ahead: it asks when it is asked. */
export function passOn<C>(
  reader: Pick<ReadableStreamDefaultReader<C>, 'read' | 'cancel'>,
): ReadableStream<C> {
  return new ReadableStream<C>(
    {
      async pull(controller) {
        const { done, value } = await reader.read()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}
