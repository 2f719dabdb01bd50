/** Waits for a store, but only briefly for one whose server refuses connections. */
import { setTimeout as sleep } from 'node:timers/promises'

/** The number of looks counts, not time: a process on a busy machine needs longer to connect. */
const LOOK_MS = 10
/** About 10 s, while no attempt has failed yet. */
const LOOKS = 1_000
/** About 2 s after the first failed attempt. A server that refuses will refuse again. */
const LOOKS_AFTER_FAILURE = 200

export async function isReady(store: {
  readonly ready: boolean
  readonly problem: unknown
}): Promise<boolean> {
  let looksLeft = LOOKS
  while (!store.ready) {
    if (store.problem !== undefined) looksLeft = Math.min(looksLeft, LOOKS_AFTER_FAILURE)
    if (looksLeft-- === 0) return false
    await sleep(LOOK_MS)
  }
  return true
}
