/**
 * Detects dead connections. If the other end disappears without closing, TCP notices after a
 * quarter of an hour. So when a reply is late, the connection is pinged, and dropped if the ping
 * gets no reply.
 */
import type { Clock } from '../../../core/time/clock.js'
import type { Connection } from '../drivers/driver.js'
import type { Redial } from './redial.js'

const SILENCE_MS = 2_000

export function createSilentConnectionCheck(redial: Redial<Connection>, clock: Clock): () => void {
  let pinged: Connection | undefined

  return () => {
    const connection = redial.client
    if (connection === undefined || pinged === connection) return
    pinged = connection
    const giveUp = () => {
      if (pinged === connection && redial.client === connection) {
        redial.hangUp(new Error('the server sent no data'))
      }
    }
    // If this process itself was busy, the reply may not have been read yet.
    const timer = clock.schedule(SILENCE_MS, () => clock.pollTurn(giveUp))
    timer.unref()
    const answered = () => {
      timer.cancel()
      if (pinged === connection) pinged = undefined
    }
    connection.ping().then(answered, answered)
  }
}
