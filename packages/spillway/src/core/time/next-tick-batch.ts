/**
 * How many batches were scheduled so far. The virtual clock reads it to see whether more are
 * coming.
 */
export const nextTickBatches = { called: 0 }

/**
 * Returns a function that schedules `run` with `process.nextTick`. Calling it several times before
 * then runs it once. So requests made by one piece of synchronous code are sent together, before
 * the event loop handles a timer or a socket.
 */
export function nextTickBatch(run: () => void): () => void {
  let expected = false
  return () => {
    if (expected) return
    expected = true
    nextTickBatches.called++
    process.nextTick(() => {
      expected = false
      run()
    })
  }
}
