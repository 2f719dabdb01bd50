/** A port of a gateway with workers. A worker reads the requests, so nothing is read here. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type ListenOptions, type Socket } from 'node:net'
import type { Listener } from './ports.js'

/** `port` of the listener is 0 for a Unix socket. */
export async function listen(
  address: ListenOptions,
  onConnection: (socket: Socket) => void,
): Promise<Listener> {
  const server = createServer({ pauseOnConnect: true, noDelay: true }, onConnection)
  server.listen(address)
  await once(server, 'listening')
  const port = address.path === undefined ? (server.address() as AddressInfo).port : 0
  return { port, close: () => void server.close() }
}
