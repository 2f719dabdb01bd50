/** Waits for a store, but only briefly for one whose server refuses connections. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Checks are counted, not time, because a process on a busy machine needs longer to connect. */
const CHECK_MS = 10
/** About 10 s, while no attempt has failed yet. */
const CHECKS = 1_000
/** About 2 s after the first failed attempt. A server that refuses a connection will refuse again. */
const CHECKS_AFTER_FAILURE = 200

export async function isReady(store: {
  readonly ready: boolean
  readonly problem: unknown
}): Promise<boolean> {
  let checksLeft = CHECKS
  while (!store.ready) {
    if (store.problem !== undefined) checksLeft = Math.min(checksLeft, CHECKS_AFTER_FAILURE)
    if (checksLeft-- === 0) return false
    await sleep(CHECK_MS)
  }
  return true
}
