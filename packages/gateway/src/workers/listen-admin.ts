/** The admin port of a gateway with workers. A worker reads the requests, so nothing is read here. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { Listener } from './supervisor.js'

export async function listenAdmin(
  { host, port }: { host: string; port: number },
  onConnection: (socket: Socket) => void,
): Promise<Listener> {
  const server = createServer({ pauseOnConnect: true }, onConnection)
  server.listen({ host, port })
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port, close: () => void server.close() }
}
