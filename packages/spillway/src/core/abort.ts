/**
 * Listening to a caller's AbortSignal without leaving anything behind: a signal may live as long as
 * the process and be passed to a million calls, a thousand of them at once. So there is one listener
 * per signal, which is gone when nobody waits any more. A signal that is aborted already is heard at
 * once.
 */
interface Listening {
  readonly waiting: Set<() => void>
  readonly onAbort: () => void
}

const listenings = new WeakMap<AbortSignal, Listening>()

/** Calls `run` when the signal is aborted; returns what prevents that. */
export function onAbort(signal: AbortSignal, run: () => void): () => void {
  if (signal.aborted) {
    run()
    return () => {}
  }
  const { waiting, onAbort } = listenings.get(signal) ?? listenTo(signal)
  // Its own function, so that the same `run` may be given twice.
  const heard = () => run()
  waiting.add(heard)
  return () => {
    if (!waiting.delete(heard) || waiting.size > 0) return
    signal.removeEventListener('abort', onAbort)
    listenings.delete(signal)
  }
}

function listenTo(signal: AbortSignal): Listening {
  const waiting = new Set<() => void>()
  const onAbort = () => {
    listenings.delete(signal)
    for (const run of waiting) run()
    waiting.clear()
  }
  signal.addEventListener('abort', onAbort, { once: true })
  const listening = { waiting, onAbort }
  listenings.set(signal, listening)
  return listening
}
