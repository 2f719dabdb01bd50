/**
 * Listening to a caller's AbortSignal without leaving listeners behind: a signal may live as long
 * as the process and be passed to a million calls.
 */
export function onAbort(signal: AbortSignal, run: () => void): () => void {
  signal.addEventListener('abort', run, { once: true })
  return () => signal.removeEventListener('abort', run)
}
