import { type CallerSignal, onAbort } from '../abort.js'
import type { Clock } from './clock.js'

/** Waits `delayMs`. An abort rejects at once with the signal's reason and cancels the timer. */
export function sleep(clock: Clock, delayMs: number, signal?: CallerSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const forget =
      signal &&
      onAbort(signal, () => {
        timer.cancel()
        reject(signal.reason)
      })
    const timer = clock.schedule(delayMs, () => {
      forget?.()
      resolve()
    })
  })
}
