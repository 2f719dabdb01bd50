import { setTimeout as sleep } from 'node:timers/promises'

const LIMIT_MS = 30_000

/** Waits until the guard shares its state through Redis. */
export async function untilShared(guard) {
  const endMs = performance.now() + LIMIT_MS
  while (guard.snapshot().store.status !== 'shared') {
    if (performance.now() > endMs) throw new Error(`no connection to Redis within ${LIMIT_MS} ms`)
    await sleep(10)
  }
}
