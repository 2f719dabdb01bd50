/** Calls `over` once, when a response was sent or its client has disconnected. */
import type { ServerResponse } from 'node:http'

export function onResponseEnd(response: ServerResponse, over: () => void): void {
  if (response.destroyed) return over()
  const { socket } = response.req
  // A pipelined response that waits for an earlier one gets no event when the connection closes.
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
  // One listener per pipelined request is no leak.
  socket.setMaxListeners(socket.getMaxListeners() + 1)
  socket.once('close', end)
}
