/** Ends a connection whose client still sends: receives and drops the data for a limited time. */
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import type { Clock } from 'spillway'
import { systemClock, type Timer } from 'spillway/internal'

/**
 * How long a client may go on sending after its answer. An overloaded client needs seconds to send what it has
 * buffered.
 */
export const LINGER_MS = 30_000
/** How much a client may send after its answer. */
export const LINGER_BYTES = 64 * 1_024 * 1_024
/** How often the bytes that do not reach `source` are counted. */
const CHECK_MS = 250

/**
 * Drops everything that arrives, and closes the connection after too much time or too many bytes. `source` is the body
 * that arrives, or the connection itself. Bytes that follow a malformed chunk or the end of the body count, too,
 * although they do not reach `source`. A 'data' listener on the connection would count them, but it would also
 * detach Node's HTTP parser from it.
 */
export function linger(socket: Socket, source: Readable, clock: Clock = systemClock): void {
  const mostBytes = socket.bytesRead + LINGER_BYTES
  const endMs = clock.now() + LINGER_MS
  let timer: Timer
  const closeIfOver = (): boolean => {
    if (socket.bytesRead <= mostBytes && clock.now() < endMs) return false
    timer.cancel()
    socket.destroySoon()
    return true
  }
  const checkLater = () => {
    timer = clock.schedule(CHECK_MS, () => {
      if (!closeIfOver()) checkLater()
    })
    timer.unref()
  }
  checkLater()
  source.on('data', closeIfOver)
  socket.once('close', () => timer.cancel())
}
