/**
 * Listening to a caller's AbortSignal without leaving listeners behind: a signal may live as long
 * as the process and be passed to a million calls. One that is aborted already is heard at once.
 */
export function onAbort(signal: AbortSignal, run: () => void): () => void {
  if (signal.aborted) {
    run()
    return () => {}
  }
  signal.addEventListener('abort', run, { once: true })
  return () => signal.removeEventListener('abort', run)
}
