/** Waits for a store, but not for one that says why it will not be there. */
import { setTimeout as sleep } from 'node:timers/promises'

/** A machine may be slow; a server that refuses will refuse again. */
const SILENCE_MS = 10_000
const REFUSED_MS = 2_000

export async function isReady(store: {
  readonly ready: boolean
  readonly problem: unknown
}): Promise<boolean> {
  const beganMs = performance.now()
  while (!store.ready) {
    const patienceMs = store.problem === undefined ? SILENCE_MS : REFUSED_MS
    if (performance.now() - beganMs > patienceMs) return false
    await sleep(10)
  }
  return true
}
