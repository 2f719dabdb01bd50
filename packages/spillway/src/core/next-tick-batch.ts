/** How many gatherings were called so far, for whoever waits until there are no more. */
export const gatherings = { called: 0 }

/**
 * Many who ask in one go are served in one go: `run` is called once for all of them, when the code
 * that asks has come to its end and before the event loop turns to a timer or a socket. Nobody waits
 * for anything outside this process.
 */
export function gathering(run: () => void): () => void {
  let expected = false
  return () => {
    if (expected) return
    expected = true
    gatherings.called++
    process.nextTick(() => {
      expected = false
      run()
    })
  }
}
