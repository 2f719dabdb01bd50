/**
 * Fires what is due, one after the other, each when all is quiet. Callbacks, not an async loop: there
 * are some three events to every simulated call, and where AsyncLocalStorage is in use each promise of a
 * loop costs as much as the rest of its turn.
 */
import { gatherings } from '../core/next-tick-batch.js'

/** So often the event loop turns all the same, for sockets and signals. */
const EVENTS_A_TURN = 256

const NOW = Promise.resolve()

/** `fireNext` answers whether there was anything to fire. All has to be quiet when this is called. */
export function passQuickly(fireNext: () => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    let events = 0
    /** Gatherings called when all was quiet last, and when this round of microtasks began. */
    let gathered = gatherings.called
    let before = gathered
    // Back among the microtasks: a tick that is called for by another one would come before them.
    const onTick = () => {
      NOW.then(onQuiet)
    }
    const nextRound = () => {
      before = gatherings.called
      process.nextTick(onTick)
    }
    const onQuiet = () => {
      // Quiet is a whole round of microtasks in which, and before which, nobody was called to the next tick.
      if (gatherings.called !== before || before !== gathered) {
        gathered = before
        return nextRound()
      }
      try {
        if (!fireNext()) return resolve()
      } catch (error) {
        return reject(error)
      }
      if (++events % EVENTS_A_TURN === 0) setImmediate(onTick)
      else nextRound()
    }
    onQuiet()
  })
}
