/**
 * Asks a store again that did not answer in time: it may only be slow for a moment, and a client that need
 * not have its answer now can wait for that. For what does no harm if it is done twice.
 */
import { type Clock, SpillwayError } from 'spillway'

const FIRST_PAUSE_MS = 50
const LAST_PAUSE_MS = 800

export async function surely<T>(ask: () => Promise<T>, clock: Clock): Promise<T> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs *= 2) {
    try {
      return await ask()
    } catch (error) {
      const isAway = error instanceof SpillwayError && error.code === 'STORE_UNAVAILABLE'
      if (!isAway || pauseMs > LAST_PAUSE_MS) throw error
    }
    await new Promise<void>((resolve) => clock.schedule(pauseMs, resolve))
  }
}
