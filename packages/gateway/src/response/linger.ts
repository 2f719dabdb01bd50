/** The end of a connection whose client still sends: what arrives is received and dropped for a limited time. */
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'

/** How long a client may go on sending after its answer. An overloaded one needs seconds for what it has begun. */
export const LINGER_MS = 30_000
/** How much a client may send after its answer. */
export const LINGER_BYTES = 64 * 1_024 * 1_024

/** Drops everything that arrives, and closes the connection after too much time or too many bytes. */
export function linger(socket: Socket, source: Readable, beforeClosing = () => {}): void {
  let bytes = 0
  const close = () => {
    beforeClosing()
    socket.destroySoon()
  }
  source.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > LINGER_BYTES) close()
  })
  const timer = setTimeout(close, LINGER_MS)
  timer.unref()
  socket.once('close', () => clearTimeout(timer))
}
