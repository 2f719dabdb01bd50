/** Tells once that a request is over: answered, or its client gone. */
import type { ServerResponse } from 'node:http'

export function whenOver(response: ServerResponse, over: () => void): void {
  if (response.destroyed) return over()
  const { socket } = response.req
  // Behind another answer on its connection, it does not hear that the connection is gone.
  const waits = response.socket === null
  const end = () => {
    response.off('close', end)
    if (waits) {
      socket.off('close', end)
      socket.setMaxListeners(socket.getMaxListeners() - 1)
    }
    over()
  }
  response.once('close', end)
  if (!waits) return
  // As many as are pipelined; that is no leak.
  socket.setMaxListeners(socket.getMaxListeners() + 1)
  socket.once('close', end)
}
