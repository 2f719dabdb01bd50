/**
 * A connection whose other end has vanished without a word stays up for a quarter of an hour, as TCP
 * sees it. Whoever has waited for an answer in vain doubts it; then it is asked for a sign of life, and
 * given up if there is none.
 */
import type { Clock } from '../../../core/time/clock.js'
import type { Connection } from '../drivers/driver.js'
import type { Redial } from './redial.js'

const SILENCE_MS = 2_000

export function createDoubt(redial: Redial<Connection>, clock: Clock): () => void {
  let asked: Connection | undefined

  return () => {
    const connection = redial.client
    if (connection === undefined || asked === connection) return
    asked = connection
    const giveUp = () => {
      if (asked === connection && redial.client === connection) {
        redial.hangUp(new Error('the server was silent'))
      }
    }
    // If this process was busy itself, the answer may not have been read yet.
    const timer = clock.schedule(SILENCE_MS, () => clock.pollTurn(giveUp))
    timer.unref()
    const answered = () => {
      timer.cancel()
      if (asked === connection) asked = undefined
    }
    connection.ping().then(answered, answered)
  }
}
