/** Whether what is sent over a connection is read at its other end. */
import type { Socket } from 'node:net'

export class UnreadWatch {
  #sinceMs: number | undefined
  #leftThen = -1

  /** Looked at now and then: nothing of what waits to be sent has left for so long. */
  isStuck(socket: Socket, nowMs: number, unreadMs: number): boolean {
    if (socket.writableLength === 0) {
      this.#sinceMs = undefined
      return false
    }
    const left = socket.bytesWritten - socket.writableLength
    if (this.#sinceMs === undefined || left !== this.#leftThen) {
      this.#sinceMs = nowMs
      this.#leftThen = left
      return false
    }
    return nowMs - this.#sinceMs > unreadMs
  }
}
