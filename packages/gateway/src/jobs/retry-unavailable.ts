/**
 * Repeats a store operation that timed out, because async requests can wait for a slow store. Only for idempotent
 * operations.
 */
import { type Clock, SpillwayError } from 'spillway'

const FIRST_PAUSE_MS = 50
const LAST_PAUSE_MS = 800

export async function retryUnavailable<T>(send: () => Promise<T>, clock: Clock): Promise<T> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs *= 2) {
    try {
      return await send()
    } catch (error) {
      const isUnreachable = error instanceof SpillwayError && error.code === 'STORE_UNAVAILABLE'
      if (!isUnreachable || pauseMs > LAST_PAUSE_MS) throw error
    }
    await new Promise<void>((resolve) => clock.schedule(pauseMs, resolve))
  }
}
