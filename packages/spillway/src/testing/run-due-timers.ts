/**
 * Fires timers that are due, one after the other, each after all promises have settled. Uses
 * callbacks and no async loop: a simulated call has about three events, and with AsyncLocalStorage
 * each promise of a loop costs as much as the rest of its turn.
 */
import { nextTickBatches } from '../core/time/next-tick-batch.js'

/** The event loop turns after this many events, for sockets and signals. */
const EVENTS_A_TURN = 256

const NOW = Promise.resolve()

/**
 * `fireNext` returns whether there was a timer to fire. All promises must have settled when this is
 * called.
 */
export function runDueTimers(fireNext: () => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    let events = 0
    /** Batches scheduled when all was settled last, and when this round of microtasks began. */
    let gathered = nextTickBatches.called
    let before = gathered
    // Back to the microtasks: a tick that another tick schedules would run before them.
    const onTick = () => {
      NOW.then(onQuiet)
    }
    const nextRound = () => {
      before = nextTickBatches.called
      process.nextTick(onTick)
    }
    const onQuiet = () => {
      // All is settled after a whole round of microtasks in which, and before which, no batch was
      // scheduled.
      if (nextTickBatches.called !== before || before !== gathered) {
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
